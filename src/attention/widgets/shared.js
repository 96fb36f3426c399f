// What explorers share, by its parts: an explorer's page and module hold those that it needs.
export * from "./shared/mathematics.js";
export * from "./shared/words.js";
export * from "./shared/elements.js";
export * from "./shared/controls.js";
export * from "./shared/heatmap.js";
export * from "./shared/charts.js";
export * from "./shared/plane.js";
export * from "./shared/raster.js";
export * from "./shared/models.js";
export * from "./shared/learner.js";
export * from "./shared/byte_pairs.js";
export * from "./shared/text_model.js";
export * from "./shared/questions.js";
