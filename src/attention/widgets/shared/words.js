// Numbers and lists in words, and sentences in the reader's language.

// A template is looked up with its places numbered, among the words that a translated page brings.
export const tr = (parts, ...values) => {
  const key = parts.reduce((text, part, i) => `${text}{${i - 1}}${part}`);
  return (globalThis.attentionWords?.[key] ?? key).replace(/\{(\d+)\}/g, (place, i) => values[i] ?? place);
};

const SUPERSCRIPT = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷",
  8: "⁸", 9: "⁹" };

export function fmt(x, digits = 3) {
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  if (!Number.isFinite(x)) return "–";
  const size = Math.abs(x);
  if (size >= 1e7 || (size > 0 && size < 0.5 * 10 ** -digits)) return power(x);
  return x.toFixed(digits).replace("-", "−");
}

// For a cell of a table: so many digits and no power of ten.
export const fixed = (x, digits = 2) => (Number.isFinite(x)
  ? x.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−") : fmt(x));

function power(x) {
  const [mantissa, exponent] = x.toExponential(1).split("e");
  const raised = [...exponent.replace("+", "")].map((c) => SUPERSCRIPT[c]).join("");
  return `${mantissa.replace("-", "−")}×10${raised}`;
}

// As short as it can be: 2 and not 2.000; 1.414 and not 1.4142136.
export const short = (x, digits = 3) => {
  const text = fmt(x, digits);
  return text.includes("×") || !text.includes(".") ? text : text.replace(/\.?0+$/, "");
};

// The sign keeps to its number.
export const percent = (x) => (x > 0 && x < 0.0005 ? "less than 0.1\u00a0%"
  : x < 1 && x > 0.9995 ? "more than 99.9\u00a0%" : `${short(100 * x, 1)}\u00a0%`);
export const count = (n, one, many = `${one}s`) => `${n} ${n === 1 ? one : many}`;

export const list = (words) => (words.length < 2 ? words.join("")
  : tr`${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

// 4.19 M, 263 k: three figures and a letter.
export const brief = (n) => {
  const [size, letter] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]
    .find(([least]) => n >= least) ?? [1, ""];
  const x = n / size;
  return `${x >= 100 || size === 1 ? Math.round(x) : x.toPrecision(3)}${letter && `\u202f${letter}`}`;
};

// Commas between thousands, exact for integers.
export const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
