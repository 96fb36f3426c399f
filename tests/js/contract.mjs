// Loads what the page and the notebook load: stdin {shared, scripts: {name: text}, modules: {...}}.
// Prints the names of shared's exports and the problems found, as JSON.
import vm from "node:vm";

const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { shared, scripts, modules } = JSON.parse(Buffer.concat(chunks).toString("utf8"));
const window = {};
const context = vm.createContext({ window });
const problems = [];
vm.runInContext(shared, context);
for (const [name, text] of Object.entries(scripts)) {
  vm.runInContext(text, context);
  if (typeof window.attentionExplorers[name]?.render !== "function") {
    problems.push(`${name}: the script registers no render`);
  }
}
for (const [name, text] of Object.entries(modules)) {
  const encoded = Buffer.from(text, "utf8").toString("base64");
  const module = await import(`data:text/javascript;base64,${encoded}`);
  if (Object.keys(module).join() !== "default" || typeof module.default.render !== "function") {
    problems.push(`${name}: the module must export { render } as default and nothing else`);
  }
}
for (const [name, value] of Object.entries(window.attentionExplorers.shared)) {
  if (typeof value !== "function") problems.push(`shared.${name} is ${typeof value}`);
}
process.stdout.write(JSON.stringify({
  exports: Object.keys(window.attentionExplorers.shared), problems }));
