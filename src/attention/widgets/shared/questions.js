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

// Numbers as readers write them: 0.5, 0,5, −3, 1e-3, 1/9, 50 %.
const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
export function readNumber(text) {
  const typed = text.trim().replace(/[−–]/g, "-").replace(/\s*\/\s*/, "/")
    .replace(/^([^/e]*\d) ?%$/, "$1e-2");
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
// A right number with too few decimals is no mistake: the reader is asked for more.
function readExact(text, answer, within) {
  const value = readNumber(text);
  const decimals = /^[-+−–]?\d*[.,]?(\d*)$/.exec(text.trim())?.[1].length;
  if (!near(value, answer, within) && near(value, answer, 0.05 * Math.abs(answer))
    && value === +answer.toFixed(decimals ?? 99)) {
    throw Error(`${text} is rounded too far: write more decimals.`);
  }
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
    read: ({ answer, tolerance }, typed) => readExact(typed, answer, tolerance),
    judge({ answer, tolerance }, value, typed) {
      const right = near(value, answer, tolerance);
      return { right, words: right ? "" : `${typed.trim()} is too ${value > answer ? "large" : "small"}.` };
    },
    same: ({ tolerance }, value, wrong) => near(value, wrong, tolerance),
  },
  matrix: {
    read: ({ answer, tolerance }, typed) => typed.map((row, i) => row.map((cell, j) => {
      try {
        return readExact(cell, answer[i][j], tolerance);
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
      [i ? " · " : "", ...rows[k - 1].children[1].cloneNode(true).childNodes]);
    return {
      legend: many ? "Choose all that fit" : "Choose one",
      typed: () => rows.flatMap((row, k) => (row.control.checked ? [k + 1] : [])),
      truth: ({ right }) => (right ? [] : ["The answer: ", ...named(answer)]),
      mark({ value }, open) {
        rows.forEach((row, k) => {
          const is = answer.includes(k + 1);
          // of several, which one is wrong is what the second try is about
          const not = value.includes(k + 1) && !is && (open || !many);
          row.lastElementChild.textContent = is && open ? "✓" : not ? "✗" : "";
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

  // A line with a mark to move; the truth is put beside it. Where it runs under a figure, mark and
  // truth are lines over the figure as well, which question.css draws.
  place(asked, form, place) {
    const { answer, tolerance, min, max, step, unit } = asked;
    const words = (value) => `${rounded(value, 0)}${unit ? ` ${unit}` : ""}`;
    const at = (value) => (value - min) / (max - min);
    const figure = place.querySelector(":scope > .question-figure");
    const input = element("input",
      { type: "range", min, max, step, value: (min + max) / 2, ariaLabel: "Your mark", className: "unmarked" });
    const now = element("span", { ariaHidden: true });
    const truth = element("div", { className: "question-truth", ariaHidden: true, hidden: true },
      element("i", {}, "▲"), element("b", {}, rounded(answer, tolerance)));
    truth.style.setProperty("--at", at(answer));
    let put = false;
    const show = (text) => {
      now.textContent = text;
      input.setAttribute("aria-valuetext", text);
    };
    for (const type of ["input", "click"]) {
      input.addEventListener(type, () => {
        put = true;
        input.className = "";
        show(words(+input.value));
        figure?.style.setProperty("--mark", at(input.value));
      });
    }
    show("no mark yet");
    form.append(
      element("div", { className: "question-line" }, now, input),
      element("div", { className: "question-ends" },
        ...[min, max].map((end) => element("span", {}, words(end)))), truth);
    if (figure) {
      form.style.cssText = figure.style.cssText; // the line begins and ends as the figure's axis
      for (const type of ["click", "pointermove"]) {
        figure.addEventListener(type, ({ buttons, clientX }) => {
          if (type !== "click" && !buttons) return; // nobody draws the mark along
          const { left, width } = input.getBoundingClientRect();
          input.value = min + (max - min) * (clientX - left - 8) / (width - 16);
          input.dispatchEvent(new Event("input"));
        });
      }
    }
    return {
      legend: "Your mark on the line",
      typed: () => (put ? input.value : ""),
      truth: (judged) => distance(asked, judged, rounded(judged.value, 0)),
      mark(judged, open) {
        truth.hidden = !open;
        if (open) figure?.style.setProperty("--truth", at(answer));
      },
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
  let at; // what counts is the first answer; of what they had the reader may think better
  let missed = ""; // a wrong answer to a check, which may be tried once more
  const tell = (got, given) => {
    if (at && asked.type !== "open") return;
    at ??= new Date().toISOString();
    const detail = { ...asked, got, given, at };
    place.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail }));
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
        fields.querySelectorAll("button").forEach((b) => b.setAttribute("aria-pressed", b === button));
        said.textContent = "Noted.";
        tell(got);
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
  const button = element("button", {}, guess ? "This is my guess" : "Check");
  form.append(button, said);
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
    const got = !right ? "wrong" : folded.open ? "partly" : "right"; // open: it was read off
    // the same once more, as by Enter twice, is no other try
    const open = guess || right || folded.open || !["", String(value)].includes(missed);
    missed = open ? null : String(value);
    way.mark(judged, open);
    const truth = guess ? way.truth(judged) : [];
    const hint = right ? null : [...folded.querySelectorAll(".question-hint")]
      .find((one) => isMistake(asked, value, JSON.parse(one.dataset.wrong)));
    const first = right ? "✓ Right. " : open ? "✗ Not so. " : "✗ Not yet. ";
    said.replaceChildren(element("p", {}, first, ...(truth.length ? truth : [words])));
    folded.querySelectorAll(".question-hint").forEach((one) => { one.hidden = right || one === hint; });
    if (hint) said.append(...[...hint.cloneNode(true).children].slice(guess ? 0 : 1));
    if (!open) said.append(element("p", {}, "Try once more, or open the answer."));
    said.dataset.right = right;
    if (open) folded.open = true;
    // the options are marked: the line that repeats the right one goes
    if (open && asked.type === "choice") folded.querySelector(":scope > .question-lead")?.remove();
    if (guess) { // the truth is told: there is nothing more to guess
      if (document.activeElement === button) folded.firstElementChild.focus({ preventScroll: true });
      button.hidden = button.disabled = true;
    }
    tell(got, typed);
  });
  folded.before(form);
}
