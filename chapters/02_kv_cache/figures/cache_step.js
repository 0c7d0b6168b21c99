// One step at a time: which rows of K and V are computed (filled), which only read (outlined),
// with and without a cache. The times are those that the chapter's run measured.
lab.figure("cache_step", {
  height: 250,
  controls: [{ key: "t", label: "Position of the new token", min: 1, max: 24, value: 12 }],
  draw(pen, at, data) {
    const size = 22, gap = 4, left = 96;
    const row = (y, name, computed) => {
      pen.text({ x: 0, y: y + 16, class: "strong" }, name);
      for (let s = 1; s <= 24; ++s) {
        const x = left + (s - 1) * (size + gap);
        if (s > at.t) continue;
        const fresh = computed(s);
        pen.rect({ x, y, width: size, height: size, rx: 4, class: fresh ? "c1" : "outline" });
        pen.text({ x: x + size / 2, y: y + 16, "text-anchor": "middle", class: fresh ? "on" : "faint" }, s);
      }
    };
    pen.text({ x: left, y: 14, class: "faint" }, "row of K and V in every layer, one for each position");
    row(28, "naive", () => true);
    row(62, "KV cache", (s) => s === at.t);

    const step = data.series.step, last = step.x.length - 1;
    const scale = 500 / step.lines["naive"][last];
    const near = Math.round((at.t - 1) * last / 23);            // the slider covers the whole run
    const bar = (y, name, line) => {
      const ms = step.lines[line][near];
      pen.text({ x: 0, y: y + 15, class: "strong" }, name);
      pen.rect({ x: left, y, width: Math.max(1, ms * scale), height: 20, rx: 3, class: line === "naive" ? "c1" : "c2" });
      pen.text({ x: left + ms * scale + 8, y: y + 15 }, `${ms.toPrecision(2)} ms`);
    };
    pen.text({ x: left, y: 124, class: "faint" },
             `measured time of a step at position ${step.x[near]} of the run`);
    bar(138, "naive", "naive");
    bar(168, "KV cache", "KV cache");
    pen.text({ x: left, y: 218, class: "faint" },
             `rows computed so far: naive ${at.t * (at.t + 1) / 2}, KV cache ${at.t}`);
    return `To make the token at position ${at.t}, the naive loop computes ${at.t} rows of K and V in every ` +
           `layer; with a cache it computes 1 and reads ${at.t - 1}.`;
  },
});
