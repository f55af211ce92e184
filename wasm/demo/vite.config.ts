import { defineConfig } from "vite";

const path = (relative: string) => decodeURIComponent(new URL(relative, import.meta.url).pathname);

export default defineConfig({
  base: "./",
  // The package that `cargo xtask wasm` makes, as a page of others would import it.
  resolve: { alias: { slabgrad: path("../../target/npm/slabgrad/index.js") } },
  worker: { format: "es" },
  build: {
    outDir: path("../../target/demo"),
    emptyOutDir: true,
    target: "es2022",
    // Modules and data stay files of their own: a page's policy need not allow data: addresses.
    assetsInlineLimit: 0,
    rolldownOptions: { input: [path("index.html"), path("playground.html")] },
  },
});
