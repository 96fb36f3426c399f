// Takes the answers to questions, in a page (questions.py) and in a notebook (question.js); whoever
// keeps score listens for the event "answered".

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// Numbers as readers write them: 0.5, 0,5, −3, 1e-3, 1/9.
const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
export function readNumber(text) {
  const typed = text.trim().replace(/[−–]/g, "-").replace(/\s*\/\s*/, "/");
  if (!typed) throw Error("There is no number yet.");
  if (/^[-+]?[1-9]\d{0,2}(,\d{3})+$/.test(typed)) {
    throw Error(`${text} can be read in two ways: write it without a comma.`);
  }
  const parts = typed.split("/").map((part) => part.replace(/^([^.,]*),([^.,]*)$/, "$1.$2"));
  if (parts.length > 2 || !parts.every((part) => DECIMAL.test(part))) {
    throw Error(`${text} is not read as a number: write it like 0.5, -3, 1e-3 or 1/9.`);
  }
  const value = parts.length > 1 ? parts[0] / parts[1] : +parts[0];
  if (!Number.isFinite(value)) throw Error(`${text} is not a finite number.`);
  return value;
}
export const near = (a, b, within) => Math.abs(a - b) <= within + 1e-9 * Math.max(1, Math.abs(b));
function rounded(value, within) {
  const decimals = within ? Math.max(0, -Math.floor(Math.log10(within))) : 0;
  const made = within ? Number(value.toFixed(Math.min(decimals, 12))) : Number(value.toPrecision(6));
  return String(made || 0).replace("-", "−");
}
const cellName = (i, j) => `row ${i + 1}, column ${j + 1}`;
const eachCell = (rows, f) => rows.flatMap((row, i) => row.map((cell, j) => f(cell, i, j)));

// The rule for each type: `read` makes a value of what was typed, or throws a sentence; `judge` says
// whether it is right; `same` whether it is this usual mistake.
const RULES = {
  choice: {
    read(asked, typed) {
      if (!typed.length) throw Error("Nothing is chosen yet.");
      return typed;
    },
    judge({ answer }, value) {
      const right = String(value) === String(answer);
      return {
        right,
        words: answer.length < 2 || right ? "" : [
          answer.some((k) => !value.includes(k)) && "Something is missing.",
          value.some((k) => !answer.includes(k)) && "Something does not fit.",
        ].filter(Boolean).join(" "),
      };
    },
    same: (asked, value, wrong) => wrong.every((k) => value.includes(k)),
  },
  number: {
    read: (asked, typed) => readNumber(typed),
    judge({ answer, tolerance }, value, typed) {
      const right = near(value, answer, tolerance);
      return { right, words: right ? "" : `${typed.trim()} is too ${value > answer ? "large" : "small"}.` };
    },
    same: ({ tolerance }, value, wrong) => near(value, wrong, tolerance),
  },
  matrix: {
    read: (asked, typed) => typed.map((row, i) => row.map((cell, j) => {
      try {
        return readNumber(cell);
      } catch (error) {
        throw Error(`${cellName(i, j)}: ${error.message}`);
      }
    })),
    judge({ answer, tolerance }, value) {
      const off = eachCell(answer, (right, i, j) =>
        (near(value[i][j], right, tolerance) ? "" : cellName(i, j))).filter(Boolean);
      return {
        right: !off.length,
        words: off.length > 4 ? `${off.length} of ${answer.flat().length} cells are off, those with a dashed line.`
          : off.length ? `Off: ${off.join("; ")}.` : "",
      };
    },
    same: ({ tolerance }, value, wrong) =>
      eachCell(wrong, (cell, i, j) => near(value[i][j], cell, tolerance)).every(Boolean),
  },
};
RULES.place = {
  ...RULES.number,
  read(asked, typed) {
    if (!typed) throw Error("There is no mark yet: move it along the line.");
    return readNumber(typed);
  },
};
export function judge(asked, typed) {
  const value = RULES[asked.type].read(asked, typed);
  return { value, ...RULES[asked.type].judge(asked, value, typed) };
}
export const isMistake = (asked, value, wrong) => RULES[asked.type].same(asked, value, wrong);

// The inputs for each type: `typed` is what they hold, `truth` what a guess is told, `mark` shows
// in them what was right.
let questionCount = 0;
function distance({ answer, tolerance, unit }, { right, value }, typed) {
  const off = rounded(Math.abs(value - answer), tolerance || 1e-6);
  return [`You said ${typed}; it is ${rounded(answer, tolerance)}${unit ? ` ${unit}` : ""}`
    + (right && off === "0" ? "." : `: ${off} away.`)];
}
const textInput = (more) => element("input",
  { type: "text", autocomplete: "off", spellcheck: false, ...more });
const FORMS = {
  choice({ answer }, form, place) {
    const many = answer.length > 1;
    const group = `question-${++questionCount}`;
    const list = place.querySelector(":scope > .question-options > ul");
    // a formula alone would leave an option without a name wherever MathML is not read
    const spoken = JSON.parse(list.parentNode.dataset.said ?? "[]");
    const rows = [...list.children].map((item, k) => {
      const words = item.children.length === 1 && item.firstElementChild.matches("p")
        ? item.firstElementChild : item;
      const input = element("input", { type: many ? "checkbox" : "radio", name: group });
      if (spoken[k] && item.querySelector("math")) input.ariaLabel = spoken[k];
      const mark = element("span", { className: "question-mark" });
      return element("label", {}, input, element("span", {}, ...words.childNodes), mark);
    });
    form.append(...rows);
    list.parentNode.remove();
    const named = (numbers) => numbers.flatMap((k, i) =>
      [i ? "; " : "", ...rows[k - 1].children[1].cloneNode(true).childNodes]);
    return {
      legend: many ? "Choose all that fit" : "Choose one",
      typed: () => rows.flatMap((row, k) => (row.control.checked ? [k + 1] : [])),
      truth: ({ right }) => (right ? [] : ["The answer is: ", ...named(answer), "."]),
      mark({ value }, open) {
        rows.forEach((row, k) => {
          const is = answer.includes(k + 1);
          const was = value.includes(k + 1);
          row.lastElementChild.textContent = open && is ? "✓ the answer"
            : was ? (is ? "" : "✗") : "";
        });
      },
    };
  },

  number(asked, form) {
    const { unit } = asked;
    const input = textInput({ size: 10 });
    form.append(element("label", {}, "A number ", input, unit ? ` ${unit}` : ""));
    return {
      typed: () => input.value,
      truth: (judged) => distance(asked, judged, input.value.trim()),
      mark: ({ right }) => input.setAttribute("aria-invalid", !right),
    };
  },

  // A line with a mark to move; the truth is put beside it.
  place(asked, form) {
    const { answer, tolerance, min, max, step, unit } = asked;
    const words = (value) => `${rounded(value, 0)}${unit ? ` ${unit}` : ""}`;
    const input = element("input", { type: "range", min, max, step, value: (min + max) / 2 });
    const now = element("span", { ariaHidden: true });
    const truth = element("div", { className: "question-truth", ariaHidden: true, hidden: true },
      element("i", {}, "▲"), element("b", {}, rounded(answer, tolerance)));
    truth.style.setProperty("--at", (answer - min) / (max - min));
    let put = false;
    const show = (text) => {
      now.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    for (const type of ["input", "click"]) {
      input.addEventListener(type, () => { put = true; show(words(+input.value)); });
    }
    show("no mark yet");
    form.append(
      element("div", { className: "question-line" }, element("label", {}, "Your mark", input), now),
      element("div", { className: "question-ends" },
        ...[min, max].map((end) => element("span", {}, words(end)))), truth);
    return {
      typed: () => (put ? input.value : ""),
      truth: (judged) => distance(asked, judged, rounded(judged.value, 0)),
      mark(judged, open) { truth.hidden = !open; },
    };
  },

  matrix({ answer, tolerance }, form) {
    const grid = element("div", { className: "question-matrix" });
    grid.style.setProperty("--columns", answer[0].length);
    const cells = answer.map((row, i) => row.map((_, j) => textInput({ "aria-label": cellName(i, j) })));
    grid.append(...cells.flat());
    form.append(grid);
    return {
      legend: `${answer.length} × ${answer[0].length} numbers`,
      typed: () => cells.map((row) => row.map((cell) => cell.value)),
      truth: () => [],
      mark: ({ value }) => eachCell(cells, (cell, i, j) =>
        cell.setAttribute("aria-invalid", !near(value[i][j], answer[i][j], tolerance))),
    };
  },
};

export function startQuestion(place) {
  const asked = JSON.parse(place.dataset.question);
  const folded = place.querySelector(":scope > .question-answer");
  const guess = place.classList.contains("guess");
  const said = element("div", { className: "question-said", role: "status" });
  let told = false; // what counts is the first answer
  let missed = ""; // a wrong answer to a check, which may be tried once more
  const tell = (got, given) => {
    if (told) return;
    told = true;
    place.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail: { ...asked, got, given } }));
  };
  const form = element("form", { className: "question-form" });
  const legend = element("legend");
  const fields = element("fieldset", {}, legend);
  const text = place.querySelector(":scope > .question-text");
  if (text) {
    text.id ||= `${asked.name}-text`;
    fields.setAttribute("aria-describedby", text.id);
  }
  form.append(fields);

  if (asked.type === "open") {
    legend.textContent = "What did you have?";
    for (const [got, words] of [["right", "All of it"], ["partly", "Part of it"], ["wrong", "Not this"]]) {
      const button = element("button", { type: "button" }, words);
      button.addEventListener("click", () => {
        tell(got);
        fields.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", b === button));
        said.textContent = "Noted.";
      });
      fields.append(button, " ");
    }
    form.append(said);
    form.hidden = !folded.open;
    folded.addEventListener("toggle", () => { form.hidden = !folded.open; });
    folded.after(form);
    folded.firstElementChild.textContent = "Show a model answer";
    return;
  }

  const way = FORMS[asked.type](asked, fields, place);
  legend.textContent = way.legend ?? (guess ? "Your guess" : "Your answer");
  form.append(element("button", {}, guess ? "This is my guess" : "Check"), said);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const typed = way.typed();
    let judged;
    try {
      judged = judge(asked, typed);
    } catch (error) {
      said.textContent = error.message;
      return;
    }
    const { right, words, value } = judged;
    // the same once more, as by Enter twice, is no other try
    const open = guess || right || folded.open || !["", String(value)].includes(missed);
    missed = open ? null : String(value);
    way.mark(judged, open);
    const truth = guess ? way.truth(judged) : [];
    const hint = right ? null : [...folded.querySelectorAll(".question-hint")]
      .find((one) => isMistake(asked, value, JSON.parse(one.dataset.wrong)));
    const first = right ? "✓ Right. " : open ? "✗ Not so. " : "✗ Not yet. ";
    said.replaceChildren(element("p", {}, first, ...(truth.length ? truth : [words])));
    folded.querySelectorAll(".question-hint").forEach((one) => { one.hidden = one === hint; });
    if (hint) said.append(...[...hint.cloneNode(true).children].slice(1));
    if (!open) said.append(element("p", {}, "Try once more, or open the answer."));
    said.dataset.right = right;
    if (open) folded.open = true;
    tell(right ? "right" : "wrong", typed);
  });
  folded.before(form);
}
