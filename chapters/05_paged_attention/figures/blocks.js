// Who holds which block, step after step, as the chapter's run recorded it.
lab.figure("blocks", {
  height: 210,
  controls: [{ key: "step", label: "Step", min: 0, max: 6, value: 3 }],
  draw(pen, at, data) {
    const slots = data.series.blocks.lines[`step ${at.step}`];
    const before = at.step > 0 ? data.series.blocks.lines[`step ${at.step - 1}`] : slots.map(() => 0);
    const size = 22, gap = 3, across = 6;
    const letter = " ABC";
    let used = 0, filled = 0;
    for (let block = 0; block < slots.length / 4; ++block) {
      const left = 8 + (block % across) * (4 * size + 30), top = 34 + Math.floor(block / across) * 84;
      const owner = slots[4 * block];
      pen.text({ x: left, y: top - 8, class: "faint" }, `block ${block}`);
      if (owner) ++used;
      for (let row = 0; row < 4; ++row) {
        const who = slots[4 * block + row], fresh = who && !before[4 * block + row];
        if (who) ++filled;
        const x = left + row * (size + gap);
        pen.rect({ x, y: top, width: size, height: size + 8, rx: 3,
                   class: who ? `c${who}${fresh ? "" : " soft"}` : "outline" });
        if (who) pen.text({ x: x + size / 2, y: top + 20, "text-anchor": "middle", class: fresh ? "on" : "" }, letter[who]);
      }
      if (owner)
        pen.text({ x: left, y: top + 48, class: "faint" }, `of ${letter[owner]}`);
    }
    return `Step ${at.step}: ${used} blocks are in use, and ${filled} of their ${4 * used} slots are filled. ` +
           `What was written in this step is bright.`;
  },
});
