import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Puts a compressed form beside every file that is worth it; the server never compresses. */
function packed(): Plugin {
  const walk = (folder: string): string[] =>
    readdirSync(folder).flatMap((name) => {
      const path = join(folder, name);
      return statSync(path).isDirectory() ? walk(path) : [path];
    });
  return {
    name: "packed",
    apply: "build",
    closeBundle() {
      for (const path of walk("dist/site")) {
        if (!/\.(js|css|html|svg)$/.test(path)) continue;
        const bytes = readFileSync(path);
        writeFileSync(`${path}.br`, brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }));
        writeFileSync(`${path}.gz`, gzipSync(bytes, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwind(), packed()],
  // Its form for browsers decodes entities by assigning markup, which our policy forbids.
  resolve: { alias: { "decode-named-character-reference": join(import.meta.dirname, "node_modules/decode-named-character-reference/index.js") } },
  build: { outDir: "dist/site", emptyOutDir: true, target: "es2023", modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: false },
  server: { proxy: { "/api": { target: "http://127.0.0.1:7340", ws: true } } },
});
