// Bundles and minifies a site's style sheets, scripts and figures; pack.py tells it what (JSON on
// standard input: home, sheets, scripts, used, figures, plain), and gets the texts back.
const fs = require("fs");
const path = require("path");
const tool = require("module").createRequire(path.join(process.argv[2], "/"));
const esbuild = tool("esbuild");
const { PurgeCSS } = tool("purgecss");
const { optimize } = tool("svgo");

// A figure is a part of its page: what reads it finds its attributes where they were, and its ids
// are not those of another figure.
const KEPT = ["cleanupIds", "inlineStyles", "minifyStyles", "removeUnknownsAndDefaults", "sortAttrs"];
const SMALLER = { floatPrecision: 2, plugins: [{ name: "preset-default",
  params: { overrides: Object.fromEntries(KEPT.map((name) => [name, false])) } }] };

async function main() {
  const { home, sheets, scripts, used, figures, plain } = JSON.parse(fs.readFileSync(0, "utf-8"));
  const bundled = await esbuild.build({
    stdin: { contents: sheets.map((sheet) => `@import "./${sheet}";`).join("\n"), resolveDir: home,
      loader: "css" },
    outdir: home, bundle: true, write: false, logLevel: "error", assetNames: "[dir]/[name].[hash]",
    outbase: home, loader: { ".woff2": "file", ".png": "dataurl", ".svg": "dataurl" },
    legalComments: "inline",
  });
  let css = "";
  const files = [];
  for (const { path: place, contents, text } of bundled.outputFiles) {
    if (place.endsWith(".css")) css = text;
    else {
      fs.mkdirSync(path.dirname(place), { recursive: true });
      fs.writeFileSync(place, contents);
      files.push(path.relative(home, place));
    }
  }
  if (!plain) {
    const content = used.map((raw) => ({ raw, extension: "html" }));
    const [{ css: kept }] = await new PurgeCSS().purge({
      content, css: [{ raw: css }], keyframes: true,
      defaultExtractor: (text) => text.match(/[\w-]+/g) ?? [],
      dynamicAttributes: ["aria-current", "aria-invalid", "aria-pressed", "aria-selected", "checked",
        "data-mode", "data-theme", "disabled", "hidden", "open", "theme"],
    });
    css = (await esbuild.transform(kept, { loader: "css", minify: true, legalComments: "inline" })).code;
  }
  const bundles = {};
  for (const [name, parts] of Object.entries(scripts)) {
    const texts = await Promise.all(parts.map(async (part) => {
      const text = fs.readFileSync(path.join(home, part), "utf-8")
        .replace(/^\/\/# sourceMappingURL=.*$/m, "")
        // a script finds other files beside itself, where it was before it was packed
        .replaceAll("document.currentScript.src", `new URL(${JSON.stringify(part)}, document.currentScript.src).href`);
      return plain ? `// ${part}\n${text}` : (await esbuild.transform(text, { minify: true })).code;
    }));
    bundles[name] = texts.join(";\n");
  }
  const drawn = plain ? figures : figures.map((figure) => optimize(figure, SMALLER).data);
  process.stdout.write(JSON.stringify({ css, bundles, files, figures: drawn }));
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
