// Reads one formula a line (JSON), answers with its MathML, a line each; maths.py starts it.
const temml = require(process.argv[2]);

require("readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { tex, display } = JSON.parse(line);
  let answer;
  try {
    const html = temml.renderToString(tex, { displayMode: display, strict: true, throwOnError: true,
      wrap: display ? "none" : "tex" });
    answer = { html };
  } catch (error) {
    answer = { error: error.message };
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`);
});
