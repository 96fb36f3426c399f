// question_pages.py puts shared/questions.js before this.
const root = document.currentScript.src;
window.attentionQuestions = { start: startQuestion, make: element, root };
document.querySelectorAll("[data-question]").forEach(startQuestion);
addEventListener("beforeprint", () => {
  document.querySelectorAll(".question-answer").forEach((folded) => { folded.open = true; });
});
