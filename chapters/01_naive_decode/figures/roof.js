// The roofline of the machine that ran the chapter, with a pass that grows from 1 token. Both axes
// are logarithmic. Left of the ridge memory limits the pass, right of it arithmetic.
lab.figure("roof", {
  height: 330,
  controls: [{ key: "step", label: "Tokens in the pass, as a power of two", min: 0, max: 8, value: 0 }],
  draw(pen, at, data) {
    const { x, lines } = data.series.roofline, measured = lines["measured"];
    const peak = data.metrics.flop_peak, bandwidth = data.metrics.bandwidth;
    const low = Math.min(...measured) / 2, high = peak * 2, first = x[0] / 2, last = x[x.length - 1] * 2;
    const px = (v) => 70 + 620 * Math.log(v / first) / Math.log(last / first);
    const py = (v) => 280 - 250 * Math.log(v / low) / Math.log(high / low);
    const ridge = peak / bandwidth, i = Math.min(at.step, x.length - 1), tokens = 2 ** i;

    pen.line({ x1: 70, y1: 280, x2: 690, y2: 280 });
    pen.line({ x1: 70, y1: 30, x2: 70, y2: 280 });
    pen.text({ x: 380, y: 318, "text-anchor": "middle", class: "faint" }, "arithmetic intensity, FLOP/byte (log)");
    pen.text({ x: 70, y: 18, class: "faint" }, "speed, GFLOP/s (log)");
    for (let v = 1; v < last; v *= 4)
      if (v > first) pen.text({ x: px(v), y: 298, "text-anchor": "middle", class: "faint" }, v);
    for (let v = 1; v < high; v *= 10)
      if (v > low) pen.text({ x: 62, y: py(v) + 4, "text-anchor": "end", class: "faint" }, v);

    const start = Math.max(first, low / bandwidth);
    pen.path({ d: `M${px(start)} ${py(start * bandwidth)} L${px(ridge)} ${py(peak)} L690 ${py(peak)}`,
               "stroke-width": 2.5 });
    pen.text({ x: 686, y: py(peak) - 8, "text-anchor": "end" }, `peak ${peak.toFixed(0)} GFLOP/s`);
    pen.text({ x: px(ridge) - 12, y: py(peak) + 4, "text-anchor": "end" }, `${bandwidth.toFixed(0)} GB/s`);
    for (let k = 0; k < x.length; ++k)
      pen.circle({ cx: px(x[k]), cy: py(measured[k]), r: k === i ? 9 : 4, class: k === i ? "c1" : "c3 soft" });
    pen.text({ x: px(x[i]) + (i > 5 ? -14 : 14), y: py(measured[i]) + 22,
               "text-anchor": i > 5 ? "end" : "start", class: "strong" },
             `${tokens} token${tokens > 1 ? "s" : ""}: ${measured[i].toPrecision(3)} GFLOP/s`);
    return `A pass over ${tokens} token${tokens > 1 ? "s" : ""} does ${x[i].toPrecision(2)} FLOP for each byte of weights: ` +
           `${x[i] < ridge ? "memory" : "arithmetic"} is the limit.`;
  },
});
