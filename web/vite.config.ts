import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
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

/** The page in which diagrams are drawn: it belongs to no site (its address has a policy of its own), and so takes no part in the rest of
 * the build. What draws is one file, loaded when a plan has a diagram. */
function diagramPage(): Plugin {
  const sources = ["node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js", "diagram/draw.js"];
  const page = (scripts: string[]) => `<!doctype html><meta charset="utf-8"><title>Diagram</title>${scripts.map((path) => `<script src="${path}"></script>`).join("")}`;
  return {
    name: "diagram-page",
    generateBundle() {
      const scripts = sources.map((path) => {
        const file = this.emitFile({ type: "asset", name: `diagram-${basename(path)}`, source: readFileSync(path) });
        return `/${this.getFileName(file)}`;
      });
      this.emitFile({ type: "asset", fileName: "diagram.html", source: page(scripts) });
    },
    configureServer(server) {
      server.middlewares.use((request, response, next) => {
        if (request.url === "/diagram.html") response.setHeader("content-type", "text/html").end(page(sources.map((path) => `/${path}`)));
        else next();
      });
    },
  };
}

export default defineConfig({
  plugins: [react(), tailwind(), diagramPage(), packed()],
  // Its form for browsers decodes entities by assigning markup, which our policy forbids.
  resolve: { alias: { "decode-named-character-reference": join(import.meta.dirname, "node_modules/decode-named-character-reference/index.js") } },
  build: { outDir: "dist/site", emptyOutDir: true, target: "es2023", modulePreload: { polyfill: false }, assetsInlineLimit: 0, reportCompressedSize: false },
  server: { proxy: { "/api": { target: "http://127.0.0.1:7340", ws: true } } },
});
