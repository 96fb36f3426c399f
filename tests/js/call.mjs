// Calls functions of a module: stdin {source, calls: [[name, ...arguments], ...]} -> stdout JSON.
// JSON has no infinities: they travel as "inf", "-inf" and "nan".
const chunks = [];
for await (const chunk of process.stdin) chunks.push(chunk);
const { source, calls } = JSON.parse(Buffer.concat(chunks).toString("utf8"), (_, value) =>
  value === "inf" ? Infinity : value === "-inf" ? -Infinity : value);
const encoded = Buffer.from(source, "utf8").toString("base64");
const module = await import(`data:text/javascript;base64,${encoded}`);
const results = calls.map(([name, ...args]) => {
  const result = module[name](...args);
  return ArrayBuffer.isView(result) ? Array.from(result) : result;
});
process.stdout.write(JSON.stringify(results, (_, value) => {
  if (typeof value !== "number" || Number.isFinite(value)) return value;
  return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
}));
