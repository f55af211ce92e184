//! The functions of `Strict<f32>`: errors against double precision over a sample of all arguments (`cargo bench --bench ulp`
//! looks at all), and the values at special arguments.

#[path = "../benches/ulp/sweep.rs"]
#[allow(dead_code, reason = "the benchmark uses the rest")]
mod sweep;

use slabgrad::backend::{Backend, Strict};
use sweep::{FUNCTIONS, POWF_BOUND, error, same};

type F = Strict<f32>;

const SPECIAL: [f32; 29] = [
    0.0,
    1e-45,
    1.1e-38,
    f32::MIN_POSITIVE,
    1e-30,
    f32::EPSILON,
    0.5,
    0.999_999_94,
    1.0,
    1.000_000_1,
    2.0,
    3.0,
    10.5,
    16.0,
    87.5,
    88.722_83,
    88.722_84,
    89.0,
    103.9,
    104.0,
    8192.0,
    8192.001,
    8_388_607.0,
    8_388_607.5,
    8_388_609.0,
    16_777_215.0,
    4.3e9,
    f32::MAX,
    f32::INFINITY,
];

fn specials() -> impl Iterator<Item = f32> {
    SPECIAL.into_iter().flat_map(|x| [x, -x]).chain([f32::NAN])
}

#[test]
fn errors_are_within_their_bounds_over_a_sample_of_all_numbers() {
    for function in FUNCTIONS {
        let worst = sweep::sweep(function, 16_381);
        assert!(worst.error <= function.bound, "{}: bound {} ulp, found {worst:?}", function.name, function.bound);
    }
    let (worst, y) = sweep::sample_powf(100_000);
    assert!(worst.error <= POWF_BOUND, "powf: bound {POWF_BOUND} ulp, found {worst:?}, exponent {y}");
}

#[test]
fn special_arguments_are_as_good_as_others() {
    for function in FUNCTIONS {
        for x in specials() {
            let got = (function.single)(x);
            let expected = (function.reference)(x.into());
            let name = function.name;
            assert!(error(got, expected) <= function.bound, "{name}({x:e}) = {got:e}, expected {expected:e}");
        }
    }
    for x in specials() {
        for y in specials() {
            let (got, expected) = (F::powf(x, y), libm::pow(x.into(), y.into()));
            assert!(error(got, expected) <= POWF_BOUND, "powf({x:e}, {y:e}) = {got:e}, expected {expected:e}");
        }
    }
}

#[test]
fn the_reference_for_large_angles_is_that_of_libm() {
    for i in 0..20_000_u32 {
        let x = f64::from(f32::from_bits(0x4600_0000 + i * 47_501));
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-15 * b.abs();
        assert!(close(sweep::sin(x), libm::sin(x)) && close(sweep::cos(x), libm::cos(x)), "{x:e}");
        assert!(close(sweep::sin(-x), -libm::sin(x)) && close(sweep::cos(-x), libm::cos(x)), "{x:e}");
    }
}

#[test]
fn small_integer_powers_of_small_integers_are_exact() {
    for base in -9_i32..=9 {
        for exponent in 0..=7_u32 {
            let got = F::powf(base as f32, exponent as f32);
            assert_eq!(got.to_bits(), (base.pow(exponent) as f32).to_bits(), "{base} to the power {exponent} is {got}");
        }
    }
}

#[test]
fn a_long_slice_gives_the_bits_of_single_elements() {
    for function in FUNCTIONS {
        let arguments: Vec<f32> = (0..1003).map(|i| (i as f32 - 500.0) * 37.3_f32).chain(specials()).collect();
        let mut all = arguments.clone();
        (function.ours)(&mut all);
        for (&x, &y) in arguments.iter().zip(&all) {
            assert!(same(y, (function.single)(x)), "{}({x:e})", function.name);
        }
    }
}

#[test]
fn a_large_neighbour_changes_no_bit() {
    for function in FUNCTIONS {
        for large in [8192.001, -1e9, f32::MAX, f32::NEG_INFINITY, f32::NAN] {
            // More than one block, and what is left of another.
            for place in 0..75 {
                let mut arguments: [f32; 75] = std::array::from_fn(|i| (i as f32 - 37.0) * 221.4);
                arguments[place] = large;
                let mut all = arguments;
                (function.ours)(&mut all);
                for (&x, &y) in arguments.iter().zip(&all) {
                    assert!(same(y, (function.single)(x)), "{}({x:e}) beside {large:e}", function.name);
                }
            }
        }
    }
}
