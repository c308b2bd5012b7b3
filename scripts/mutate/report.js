/** Each fault that no test noticed, as a person would look for it. */
export function describeSurvivors(results) {
  return results
    .filter(({ outcome }) => outcome === "survived" || outcome === "untested")
    .map(({ file, line, kind, before, text, outcome }) => {
      const shown = [
        ...before.split("\n").map((one) => `  - ${one}`),
        ...text.split("\n").map((one) => `  + ${one}`),
      ];
      return `${file}:${line}: ${kind} (${outcome})\n${shown.join("\n")}\n`;
    })
    .join("");
}

/**
 * The part of the faults that a test noticed, for each place, with the interval of 95 % in which that of all faults is. `equivalent` are how many
 * faults of each place were left out because they change nothing observable.
 */
export function describeScores(results, equivalent = {}) {
  const places = [...new Set(results.map(({ place }) => place))];
  return places
    .map((place) => {
      const valid = results.filter((one) => one.place === place && one.outcome !== "invalid");
      const noticed = valid.filter(({ outcome }) => outcome === "killed" || outcome === "timed-out").length;
      const [low, high] = interval(noticed, valid.length);
      const part = percent(valid.length === 0 ? Number.NaN : noticed / valid.length);
      const left = equivalent[place] ? `; ${equivalent[place]} that change nothing are not among them` : "";
      return `${place}: ${noticed} of ${valid.length} noticed, ${part} (95 %: ${percent(low)} – ${percent(high)})${left}\n`;
    })
    .join("");
}

/** Wilson's, which holds for few samples and near the ends too. */
export function interval(successes, count) {
  if (count === 0) return [0, 1];
  const z = 1.96;
  const part = successes / count;
  const middle = (part + z ** 2 / (2 * count)) / (1 + z ** 2 / count);
  const spread =
    (z / (1 + z ** 2 / count)) * Math.sqrt((part * (1 - part)) / count + z ** 2 / (4 * count ** 2));
  return [Math.max(0, middle - spread), Math.min(1, middle + spread)];
}

function percent(part) {
  return `${(part * 100).toFixed(1)} %`;
}
