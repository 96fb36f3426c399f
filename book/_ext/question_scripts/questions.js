// A page's questions; question_pages.py puts the functions of shared/questions.js before this.
const root = document.currentScript.src;
window.attentionQuestions = { start: startQuestion, make: element, root };
document.querySelectorAll("[data-question]").forEach(startQuestion);
addEventListener("beforeprint", () => {
  document.querySelectorAll(".question-answer").forEach((folded) => { folded.open = true; });
});
