// Builds the two files of ../static: the stub that every widget carries, and the bundle that a page loads once.
// Deterministic: two builds of the same sources and lock file are equal to the byte.
import { build } from "esbuild";

const shared = {
  absWorkingDir: import.meta.dirname,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  logLevel: "info",
};

await build({ ...shared, entryPoints: ["src/stub.js"], outfile: "../static/stub.js" });
await build({
  ...shared,
  entryPoints: ["src/index.js"],
  outfile: "../static/page.js",
  loader: { ".css": "text" },
  legalComments: "eof",
});
