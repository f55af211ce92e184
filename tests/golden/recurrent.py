"""Makes tests/golden/recurrent.json: see the README beside it."""
import json, sys, torch
torch.manual_seed(20240607)
torch.set_num_threads(1)

def t32(*shape, scale=1.0):
    """Random float64 that are float32 exactly."""
    return (torch.randn(*shape, dtype=torch.float64) * scale).to(torch.float32).to(torch.float64)

def num(v):
    return int(v) if v == int(v) and not (v == 0 and str(v)[0] == "-") else v

def enc(t):
    return {"shape": list(t.shape), "data": [num(v) for v in t.detach().to(torch.float64).reshape(-1).tolist()]}

def run(f, inputs, dtype, dy):
    xs = {k: v.to(dtype).clone().requires_grad_(True) for k, v in inputs.items()}
    y = f(xs)
    (y * dy.to(dtype)).sum().backward()
    return y, {k: v.grad for k, v in xs.items()}

def err(a, b):
    d = (a.to(torch.float64) - b).abs()
    return [d.max().item(), (d / b.abs().clamp(min=1e-6)).max().item()]

cases = []
def case(name, attrs, inputs, f):
    y0 = f({k: v.clone() for k, v in inputs.items()})
    dy = t32(*y0.shape)
    y, g = run(f, inputs, torch.float64, dy)
    y3, g3 = run(f, inputs, torch.float32, dy)
    cases.append({"name": name, "attrs": attrs, "inputs": {k: enc(v) for k, v in inputs.items()}, "output": enc(y),
                  "grad_output": enc(dy), "grads": {k: enc(v) for k, v in g.items()},
                  "f32_err": {"output": err(y3, y), **{k: err(g3[k], g[k]) for k in g}}})

def recurrent(kind, gates):
    T, B, I, H = 3, 2, 4, 5
    inputs = {"x": t32(T, B, I), "h0": t32(B, H, scale=0.5)}
    if kind == "lstm":
        inputs["c0"] = t32(B, H, scale=0.5)
    inputs |= {"weight_ih": t32(gates * H, I, scale=0.5), "weight_hh": t32(gates * H, H, scale=0.5),
               "bias_ih": t32(gates * H, scale=0.5), "bias_hh": t32(gates * H, scale=0.5)}
    def f(v):
        w = [v["weight_ih"], v["weight_hh"], v["bias_ih"], v["bias_hh"]]
        h0 = v["h0"].unsqueeze(0)
        if kind == "lstm":
            return torch.lstm(v["x"], (h0, v["c0"].unsqueeze(0)), w, True, 1, 0.0, False, False, False)
        return torch.gru(v["x"], h0, w, True, 1, 0.0, False, False, False)
    # All hidden states, and behind them the last state of the cells.
    if kind == "lstm":
        g = lambda v: (lambda o: torch.cat([o[0].reshape(T * B, H), o[2].reshape(B, H)]))(f(v))
    else:
        g = lambda v: f(v)[0].reshape(T * B, H)
    case(kind, {"op": kind, "steps": T}, inputs, g)

recurrent("lstm", 4)
recurrent("gru", 3)

qkv = {"q": t32(2, 4, 3), "k": t32(2, 4, 3), "v": t32(2, 4, 5)}
sdpa = torch.nn.functional.scaled_dot_product_attention
case("attention_causal", {"op": "sdpa", "is_causal": True}, qkv, lambda v: sdpa(v["q"], v["k"], v["v"], is_causal=True))

E, heads, T, B = 6, 2, 4, 2
inputs = {"x": t32(B, T, E), "in_proj_weight": t32(3 * E, E, scale=0.5), "in_proj_bias": t32(3 * E, scale=0.5),
          "out_proj.weight": t32(E, E, scale=0.5), "out_proj.bias": t32(E, scale=0.5)}
for causal in (False, True):
    def mha(v):
        mask = torch.ones(T, T, dtype=torch.bool).triu(1) if causal else None
        x = v["x"].transpose(0, 1)
        y, _ = torch.nn.functional.multi_head_attention_forward(
            x, x, x, E, heads, v["in_proj_weight"], v["in_proj_bias"], None, None, False, 0.0,
            v["out_proj.weight"], v["out_proj.bias"], training=True, need_weights=False, attn_mask=mask)
        return y.transpose(0, 1)
    case("multi_head" + ("_causal" if causal else ""), {"op": "multi_head_attention", "heads": heads, "is_causal": causal}, inputs, mha)

json.dump({"schema": "golden-1", "group": "recurrent", "torch": torch.__version__.split("+")[0], "cases": cases},
          open(sys.argv[1], "w"), separators=(",", ":"))
