// The same twelve requests in four slots, batched in the old way and continuously. The bars are
// the stays that the chapter's run recorded, in the virtual clock's seconds.
lab.figure("slots", {
  height: 330,
  controls: [{ key: "t", label: "Time, % of the static run", min: 0, max: 100, step: 2, value: 60 }],
  draw(pen, at, data) {
    const left = 24, width = 690, row = 26, gap = 4;
    const kinds = [["static", "static batches"], ["continuous", "continuous batching"]];
    const end = data.metrics.slots_static_s;
    const now = at.t / 100 * end;
    const said = [];
    kinds.forEach(([kind, title], k) => {
      const top = 30 + k * 156;
      const stays = data.series[`slots_${kind}`].lines;
      let idle = 0, done = 0;
      pen.text({ x: left, y: top - 10, class: "strong" }, title);
      for (let slot = 0; slot < 4; ++slot) {
        const y = top + slot * (row + gap);
        pen.rect({ x: left, y, width, height: row, rx: 4, class: "outline" });
        pen.text({ x: 8, y: y + 18, class: "faint" }, slot);
        let busy = false;
        stays.slot.forEach((s, i) => {
          if (s !== slot || stays.begin_s[i] >= now) return;
          const stop = Math.min(stays.end_s[i], now);
          const x = left + stays.begin_s[i] / end * width;
          const wide = (stop - stays.begin_s[i]) / end * width;
          busy = busy || stays.end_s[i] > now;
          done += stays.end_s[i] <= now ? 1 : 0;
          pen.rect({ x: x + 1, y: y + 2, width: Math.max(1, wide - 2), height: row - 4, rx: 3,
                     class: `c${1 + stays.request[i] % 6}` });
          if (wide > 16)
            pen.text({ x: x + wide / 2, y: y + 18, "text-anchor": "middle", class: "on" },
                     String.fromCharCode(65 + stays.request[i]));
        });
        idle += busy ? 0 : 1;
      }
      said.push(`${title}: ${done} of 12 done, ${done === 12 ? "nothing left to do" : `${idle} of 4 slots idle`}`);
    });
    const x = left + at.t / 100 * width;
    pen.line({ x1: x, y1: 22, x2: x, y2: 308, class: "strong" });
    pen.text({ x: left, y: 326, class: "faint" }, `${now.toFixed(2)} s of ${end.toFixed(2)} s`);
    return `${said.join("; ")}.`;
  },
});
