// Serves a folder on localhost.

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { createServer } from "node:http";
import { extname, join, normalize } from "node:path";

const TYPES = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".wasm": "application/wasm",
};

/** The address of the server, and how to end it. */
export async function serve(folder, port = 0) {
  const server = createServer(async (request, response) => {
    const { pathname } = new URL(request.url, "http://localhost");
    const file = join(folder, normalize(pathname.endsWith("/") ? `${pathname}index.html` : decodeURIComponent(pathname)));
    const found = file.startsWith(folder) && (await stat(file).catch(() => undefined))?.isFile();
    if (!found) return response.writeHead(404).end();
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream", "cache-control": "no-cache" });
    createReadStream(file).pipe(response);
  });
  await new Promise((resolve, reject) => server.once("error", reject).listen(port, "127.0.0.1", resolve));
  return { address: `http://localhost:${server.address().port}/`, close: () => new Promise((resolve) => server.close(resolve)) };
}

// node serve.mjs FOLDER [PORT]
if (process.argv[1] && import.meta.filename === process.argv[1]) {
  const [, , folder, port] = process.argv;
  const { address } = await serve(folder, Number(port ?? 0));
  console.log(`${address} (Ctrl+C ends it)`);
}
