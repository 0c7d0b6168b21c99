// Which tiles of the matrix of scores a block of queries meets: one after the other, and never two
// at a time.
lab.figure("tiles", {
  height: 270,
  controls: [
    { key: "block", label: "Block of queries", min: 1, max: 8, value: 4 },
    { key: "tile", label: "Tile", min: 1, max: 8, value: 2 },
  ],
  draw(pen, at, data) {
    const n = 8, size = 24, gap = 3, left = 96, top = 34;
    const now = Math.min(at.tile, at.block);
    pen.text({ x: left, y: 14, class: "faint" }, "tiles of keys");
    for (let row = 1; row <= n; ++row) {
      const y = top + (row - 1) * (size + gap);
      pen.text({ x: 0, y: y + 17, class: row === at.block ? "strong" : "faint" }, `queries ${row}`);
      for (let column = 1; column <= row; ++column) {
        const x = left + (column - 1) * (size + gap), mine = row === at.block;
        pen.rect({ x, y, width: size, height: size, rx: 3,
                   class: mine && column === now ? "c1" : mine && column < now ? "c1 soft" : "outline" });
        if (column === row)
          pen.text({ x: x + size / 2, y: y + 17, "text-anchor": "middle",
                     class: mine && column === now ? "on" : "faint" }, "m");
      }
    }
    const right = left + n * (size + gap) + 40, counted = data.series.bytes;
    pen.text({ x: right, y: 52, class: "strong" }, "in fast memory");
    pen.text({ x: right, y: 76 }, `q, m, l and o of block ${at.block}`);
    pen.text({ x: right, y: 98 }, `k and v of tile ${now}`);
    pen.text({ x: right, y: 136, class: "strong" }, "tiles loaded");
    pen.text({ x: right, y: 160 }, `by this block so far: ${now} of ${at.block}`);
    pen.text({ x: right, y: 182 }, `by all blocks: ${n * (n + 1) / 2} of ${n * n}`);
    const last = counted.x.length - 1, moved = counted.lines["counted"];
    pen.text({ x: right, y: 220, class: "faint" }, `the run: ${moved[0].toPrecision(3)} MB if M = ${counted.x[0]},`);
    pen.text({ x: right, y: 238, class: "faint" }, `${moved[last].toPrecision(3)} MB if M = ${counted.x[last]}`);
    return `Block ${at.block} loads ${at.block} of ${n} tiles, since its queries see no later key. ` +
           `It is at tile ${now}; "m" marks the tiles on the diagonal, which need a mask.`;
  },
});
