// Takes the answers to a page's questions. What is asked, and what is right, stands in the page
// (questions.py); nothing leaves it. Whoever keeps score listens for the event "answered".
(() => {
  const make = (tag, properties = {}, ...children) => {
    const made = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key in made) made[key] = value;
      else made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  };

  // numbers, as readers write them: 0.5, 0,5, −3, 1e-3, 1/9
  const DECIMAL = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
  function parse(text) {
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
  const near = (a, b, within) => Math.abs(a - b) <= within + 1e-9 * Math.max(1, Math.abs(b));
  function shown(value, within) {
    const decimals = within ? Math.max(0, -Math.floor(Math.log10(within))) : 0;
    const rounded = within ? Number(value.toFixed(Math.min(decimals, 12))) : Number(value.toPrecision(6));
    return String(rounded || 0).replace("-", "−");
  }

  // One way to ask for each type. `form` gets the inputs; `answer()` reads them, or throws a
  // sentence; `judge(answer)` says it: { right, words, same(wrong) }; and marks the inputs.
  let count = 0;
  const kinds = {
    choice({ answer }, form, place) {
      const many = answer.length > 1;
      const group = `question-${++count}`;
      const list = place.querySelector(":scope > .question-options > ul");
      // a formula alone would leave an option without a name wherever MathML is not read
      const spoken = JSON.parse(list.parentNode.dataset.said ?? "[]");
      const rows = [...list.children].map((item, k) => {
        const words = item.children.length === 1 && item.firstElementChild.matches("p")
          ? item.firstElementChild : item;
        const input = make("input", { type: many ? "checkbox" : "radio", name: group });
        if (spoken[k] && item.querySelector("math")) input.ariaLabel = spoken[k];
        const mark = make("span", { className: "question-mark" });
        return make("label", {}, input, make("span", {}, ...words.childNodes), mark);
      });
      form.append(...rows);
      list.parentNode.remove();
      const chosen = () => rows.flatMap((row, k) => (row.control.checked ? [k + 1] : []));
      const named = (numbers) => numbers.flatMap((k, i) =>
        [i ? "; " : "", ...rows[k - 1].children[1].cloneNode(true).childNodes]);
      return {
        legend: many ? "Choose all that fit" : "Choose one",
        answer() {
          const all = chosen();
          if (!all.length) throw Error("Nothing is chosen yet.");
          return all;
        },
        judge(given) {
          const right = String(given) === String(answer);
          return {
            right,
            words: !many || right ? "" : [
              answer.some((k) => !given.includes(k)) && "Something is missing.",
              given.some((k) => !answer.includes(k)) && "Something does not fit.",
            ].filter(Boolean).join(" "),
            truth: right ? [] : ["The answer is: ", ...named(answer), "."],
            same: (wrong) => wrong.every((k) => given.includes(k)),
          };
        },
        mark(given, truth) {
          rows.forEach((row, k) => {
            const is = answer.includes(k + 1);
            const was = given.includes(k + 1);
            row.lastElementChild.textContent = truth && is ? "✓ the answer"
              : was ? (is ? "" : "✗") : "";
          });
        },
      };
    },

    number({ answer, tolerance, unit }, form) {
      const input = make("input", { type: "text", autocomplete: "off", spellcheck: false, size: 10 });
      form.append(make("label", {}, "A number ", input, unit ? ` ${unit}` : ""));
      return {
        answer: () => parse(input.value),
        judge(given) {
          const right = near(given, answer, tolerance);
          const off = shown(Math.abs(given - answer), tolerance || 1e-6);
          return {
            right,
            words: right ? "" : `${input.value.trim()} is too ${given > answer ? "large" : "small"}.`,
            truth: [`You said ${input.value.trim()}; it is ${shown(answer, tolerance)}${unit ? ` ${unit}` : ""}`
              + (right && off === "0" ? "." : `: ${off} away.`)],
            same: (wrong) => near(given, wrong, tolerance),
          };
        },
        mark: (given, truth, right) => input.setAttribute("aria-invalid", !right),
      };
    },

    matrix({ answer, tolerance }, form) {
      const grid = make("div", { className: "question-matrix" });
      grid.style.setProperty("--columns", answer[0].length);
      const cells = answer.map((row, i) => row.map((_, j) => make("input", {
        type: "text", autocomplete: "off", spellcheck: false, "aria-label": `row ${i + 1}, column ${j + 1}`,
      })));
      grid.append(...cells.flat());
      form.append(grid);
      const each = (f) => cells.flatMap((row, i) => row.map((cell, j) => f(cell, i, j)));
      return {
        legend: `${answer.length} × ${answer[0].length} numbers`,
        answer: () => cells.map((row) => row.map((cell) => {
          try {
            return parse(cell.value);
          } catch (error) {
            throw Error(`${cell.ariaLabel}: ${error.message}`);
          }
        })),
        judge(given) {
          const off = each((_, i, j) => (near(given[i][j], answer[i][j], tolerance)
            ? [] : [`row ${i + 1}, column ${j + 1}`])).flat();
          return {
            right: !off.length,
            words: off.length > 4 ? `${off.length} of ${cells.flat().length} cells are off, those with a dashed line.`
              : off.length ? `Off: ${off.join("; ")}.` : "",
            truth: [],
            same: (other) => each((_, i, j) => near(given[i][j], other[i][j], tolerance)).every(Boolean),
          };
        },
        mark: (given) => each((cell, i, j) =>
          cell.setAttribute("aria-invalid", !near(given[i][j], answer[i][j], tolerance))),
      };
    },
  };

  function start(place) {
    const asked = JSON.parse(place.dataset.question);
    const folded = place.querySelector(":scope > .question-answer");
    const guess = place.classList.contains("guess");
    const said = make("div", { className: "question-said", role: "status" });
    let told = false; // what counts is the first answer
    const tell = (got) => {
      if (told) return;
      told = true;
      place.dispatchEvent(new CustomEvent("answered", { bubbles: true, detail: { ...asked, got } }));
    };
    const form = make("form", { className: "question-form" });
    const legend = make("legend");
    const text = place.querySelector(":scope > .question-text");
    text.id ||= `${asked.name}-text`;
    const fields = make("fieldset", { "aria-describedby": text.id }, legend);
    form.append(fields);

    if (asked.type === "open") {
      legend.textContent = "What did you have?";
      for (const [got, words] of [["right", "All of it"], ["partly", "Part of it"], ["wrong", "Not this"]]) {
        const button = make("button", { type: "button" }, words);
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

    const way = kinds[asked.type](asked, fields, place);
    legend.textContent = way.legend ?? (guess ? "Your guess" : "Your answer");
    form.append(make("button", {}, guess ? "This is my guess" : "Check"), said);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      let given;
      try {
        given = way.answer();
      } catch (error) {
        said.textContent = error.message;
        return;
      }
      const { right, words, truth, same } = way.judge(given);
      const open = guess || right;
      way.mark(given, open, right);
      const hint = right ? null : [...folded.querySelectorAll(".question-hint")]
        .find((one) => same(JSON.parse(one.dataset.wrong)));
      const first = right ? "✓ Right. " : guess ? "✗ Not so. " : "✗ Not yet. ";
      said.replaceChildren(make("p", {}, first, ...(guess && truth.length ? truth : [words])));
      folded.querySelectorAll(".question-hint").forEach((one) => { one.hidden = one === hint; });
      if (hint) said.append(...[...hint.cloneNode(true).children].slice(1));
      said.dataset.right = right;
      if (open) folded.open = true;
      tell(right ? "right" : "wrong");
    });
    folded.before(form);
  }

  const root = document.currentScript.src;
  window.attentionQuestions = { start, make, root };
  document.querySelectorAll("[data-question]").forEach(start);
  addEventListener("beforeprint", () => {
    document.querySelectorAll(".question-answer").forEach((folded) => { folded.open = true; });
  });
})();
