// The page "Review": the cards that are due, one after the other, and the reader's own file.
(() => {
  const place = document.querySelector(".review");
  const memory = window.attentionMemory;
  const { make, read, parse, merge, KEY } = memory;
  const status = make("p", { className: "review-status" });
  const said = make("p", { className: "review-said" });
  said.setAttribute("role", "status");
  const desk = make("div", { className: "review-desk" });
  const next = make("button", { type: "button", hidden: true }, "Next card");
  const skip = make("button", { type: "button", hidden: true }, "I do not know");

  const gone = new Set(); // cards of questions that the book has no more
  const waiting = () => memory.dueCards(read())
    .filter((one) => one.due <= memory.today() && !gone.has(one.name));
  function count() {
    const all = memory.dueCards(read());
    const left = waiting().length;
    const later = all.find((one) => one.due > memory.today());
    status.textContent = !all.length
      ? "There are no cards yet. A question becomes a card when you answer it in its chapter."
      : `${left} of ${all.length} card${all.length === 1 ? "" : "s"} due today.`
        + (!left && later ? ` The next is due on ${memory.date(later.due)}.` : "");
  }
  async function deal(focus) {
    for (const one of waiting()) {
      const shown = await memory.card(one.name, one.page);
      if (!shown) {
        gone.add(one.name);
        continue;
      }
      desk.replaceChildren(shown);
      const answered = (is) => {
        next.hidden = !is;
        skip.hidden = is || !shown.querySelector("form input");
      };
      answered(false);
      shown.addEventListener("answered", () => answered(true));
      skip.onclick = () => {
        const folded = shown.querySelector(".question-answer");
        folded.open = true;
        folded.firstElementChild.focus();
        memory.record(one.name, one.page, "wrong");
        answered(true);
      };
      const title = shown.querySelector(".admonition-title");
      title.tabIndex = -1;
      if (focus) title.focus();
      return count();
    }
    desk.replaceChildren();
    next.hidden = skip.hidden = true;
    count();
    if (focus) {
      status.tabIndex = -1;
      status.focus();
    }
  }
  next.addEventListener("click", () => deal(true));

  // the file

  function save(name, text) {
    const link = make("a", { download: name, href: URL.createObjectURL(new Blob([text], { type: "application/json" })) });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
  const button = (words, does) => {
    const made = make("button", { type: "button" }, words);
    made.addEventListener("click", does);
    return made;
  };
  const file = make("input", { type: "file", accept: ".json,application/json" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      const before = Object.keys(read().cards).length;
      const state = parse(await chosen.text());
      memory.add(state);
      const more = Object.keys(read().cards).length - before;
      said.textContent = `${chosen.name} was added: ${more} new card${more === 1 ? "" : "s"}.`;
      deal();
    } catch (error) {
      said.textContent = `${chosen.name} was not read, and nothing was changed. ${error.message}`;
    }
    file.value = "";
  });
  const asides = make("p");
  function listAside() {
    let keys = [];
    try {
      keys = Object.keys(localStorage).filter((key) => key.startsWith(`${KEY}-aside-`)).sort();
    } catch { /* none */ }
    asides.replaceChildren(keys.length ? "What could not be read was put aside, as it was: " : "", ...keys.map((key) =>
      button(`Save what was put aside on ${key.slice(KEY.length + 7, KEY.length + 17)}`,
        () => save(`${key.replaceAll(":", "-")}.txt`, localStorage.getItem(key)))));
  }
  const terms = make("p");
  memory.fetchScript("cards-index.js").then(() => {
    for (const [page, names] of Object.entries(window.attentionTerms ?? {})) {
      const known = read().cards;
      const fresh = names.filter((name) => !Object.hasOwn(known, name));
      if (!fresh.length) continue;
      const add = button(`Add the ${fresh.length} terms of the glossary`, () => {
        memory.add({ cards: Object.fromEntries(fresh.map((name) => [name, { page, log: [] }])) });
        terms.replaceChildren();
        said.textContent = `${fresh.length} terms were added; they are due today.`;
        deal();
      });
      terms.append(add);
    }
  });
  place.replaceChildren(
    status, desk, make("p", {}, skip, next), terms,
    make("h2", {}, "Your answers"),
    make("p", {},
      button("Export as a file", () => {
        save("attention-book.json", JSON.stringify(read(), null, 1));
        said.textContent = "The file attention-book.json has all that the book knows of you.";
      }), " ",
      button("Erase everything", () => {
        if (!confirm("Erase all answers and marks that this browser keeps for the book?")) return;
        memory.erase();
        said.textContent = "Everything is erased.";
        deal();
      })),
    make("p", {}, make("label", {}, "Add a file that was exported: ", file)),
    asides, said,
  );
  let told = "";
  memory.watch(() => {
    count();
    listAside();
    if (memory.trouble() !== told) said.textContent = told = memory.trouble();
  });
  if (location.protocol === "file:") {
    place.append(make("p", {}, "You read the book from a folder. Some browsers then keep what each "
      + "page knows apart from the others, and this page stays empty; over http it does not."));
  }
  deal();
})();
