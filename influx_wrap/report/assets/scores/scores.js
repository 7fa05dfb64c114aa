// Scores of predicted intrinsics: tables, curves, and every video over time.

byId("title").textContent = data.title;
byId("used").append(...data.used.map((text) => make("li", {}, text)));
byId("table").append(tableOf(data.table, "Scores of all frames"));
for (const group of data.groups) {
  byId("groups").append(make("h2", {}, `By ${group.by}`), tableOf(group, `Scores by ${group.by}`));
}
buildChart();
data.methods.forEach((name, method) => byId("of").add(new Option(name, method)));
strips.forEach((strip) => {
  strip.section.dataset.number = strip.number;
  addressOnFocus(strip.section, strip.video.name);
  watcher.observe(strip.section);
});
arrangeStrips();
byId("filter").addEventListener("input", arrangeStrips);
byId("by").addEventListener("change", arrangeStrips);
byId("of").addEventListener("change", arrangeStrips);
window.addEventListener("hashchange", goLinked);
goLinked();
window.addEventListener("beforeprint", () => {
  strips.filter((strip) => strip.stale).forEach(drawStrip);
});
onKeys({ l: () => byId("axis").click(), "/": () => byId("filter").focus(),
  n: () => goStrip(1), p: () => goStrip(-1) });
