// SPDX-License-Identifier: Apache-2.0
//
// Bundles src/ into dist/page.html: one file with its script and style inside. The same sources
// give the same bytes. `prepost draw` puts its data and its title into the file's two marks.
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const common = { bundle: true, minify: true, write: false, target: "es2022", charset: "ascii" };
const script = await build({
  ...common,
  entryPoints: ["src/main.ts"],
  format: "iife",
  legalComments: "none",
  metafile: true,
});
const style = await build({ ...common, entryPoints: ["src/page.css"] });

/** The licences of the packages that are inside, each text once, as a comment. */
function licences(inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const found = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (found) packages.add(found[1]);
  }
  const byText = new Map();
  for (const name of [...packages].sort()) {
    const file = `node_modules/${name}/LICENSE`;
    if (!existsSync(file)) throw new Error(`${file} is missing`);
    const text = readFileSync(file, "utf8").trim();
    byText.set(text, [...(byText.get(text) ?? []), name]);
  }
  const parts = [...byText].map(([text, names]) => `${names.join(", ")}\n\n${text}`);
  const all = parts.join("\n\n").replaceAll("--", "- -");
  return `<!--\nThis page contains parts of these packages.\n\n${all}\n-->`;
}

/** Of all that the page is made of, so that a test sees whether it is theirs. */
function hashOfSources() {
  const hash = createHash("sha256");
  const files = readdirSync("src").map((name) => `src/${name}`);
  for (const file of ["build.mjs", "package-lock.json", "tsconfig.json", ...files].sort()) {
    hash.update(`${file}\n`).update(readFileSync(file));
  }
  return hash.digest("hex");
}

/** Puts `text` at the one place of `mark`. */
function fill(page, mark, text) {
  const parts = page.split(mark);
  if (parts.length !== 2) throw new Error(`${mark} must be there exactly once`);
  return parts.join(text);
}

// A script must not end its own element.
const code = script.outputFiles[0].text.trim().replaceAll("</script", "<\\/script");
let page = readFileSync("src/page.html", "utf8");
const inputs = Object.keys(script.metafile.inputs);
page = fill(page, "<!-- @LICENCES@ -->", licences(inputs));
page = fill(page, "@SOURCES@", hashOfSources());
page = fill(page, "/*@STYLE@*/", style.outputFiles[0].text.trim());
page = fill(page, "/*@SCRIPT@*/", code);
for (const mark of ["@PREPOST_DATA@", "@PREPOST_TITLE@"]) fill(page, mark, "");
mkdirSync("dist", { recursive: true });
writeFileSync("dist/page.html", page);
console.log(`dist/page.html: ${page.length} bytes`);
