// question_pages.py puts shared/questions.js before this.
window.attentionQuestions = { make: element, start: startQuestion };
document.querySelectorAll("[data-question]").forEach(startQuestion);
addEventListener("beforeprint", () => {
  document.querySelectorAll(".question-answer").forEach((folded) => { folded.open = true; });
});
