export interface Bar {
  label: string;
  count: number;
  /** A shorter label for the axis, which has room for five of them. */
  mark?: string;
  /** Where the rows that it stands for are listed. */
  href?: string;
}

const WIDTH = 600;
const HEIGHT = 180;
const LABEL_HEIGHT = 22;
const TOP = 16;

interface BarChartProps {
  title: string;
  /** One sentence with the numbers that matter. */
  summary: string;
  unit: string;
  bars: readonly Bar[];
}

/** Upright bars. The table below has the same numbers, for everybody who cannot see or measure them. */
export function BarChart({ title, summary, unit, bars }: BarChartProps) {
  const largest = Math.max(1, ...bars.map(({ count }) => count));
  const width = WIDTH / Math.max(1, bars.length);
  const room = HEIGHT - LABEL_HEIGHT - TOP;
  // As many labels as are legible.
  const hasMarks = bars.some(({ mark }) => mark !== undefined);
  const labelEvery = Math.max(1, Math.ceil(bars.length / (hasMarks ? 5 : 8)));
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <p>{summary}</p>
      </figcaption>
      {bars.length > 0 && (
        <>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={`${title}. ${summary}`}>
            <line class="axis" x1="0" x2={WIDTH} y1={TOP + room} y2={TOP + room} />
            {bars.map(({ label, mark, count }, at) => {
              const height = (count / largest) * room;
              const middle = at * width + width / 2;
              return (
                <g key={label}>
                  <rect
                    class="bar"
                    x={at * width + 1}
                    y={TOP + room - height}
                    width={Math.max(1, width - 2)}
                    height={height}
                  />
                  {count > 0 && bars.length <= 16 && (
                    <text x={middle} y={TOP + room - height - 4} text-anchor="middle">
                      {count.toLocaleString("en")}
                    </text>
                  )}
                  {at % labelEvery === 0 && (
                    <text
                      x={hasMarks ? at * width + 1 : middle}
                      y={HEIGHT - 6}
                      text-anchor={hasMarks ? "start" : "middle"}
                    >
                      {mark ?? label}
                    </text>
                  )}
                </g>
              );
            })}
          </svg>
          <BarTable title={title} unit={unit} bars={bars} />
        </>
      )}
    </figure>
  );
}

/** Lying bars, for names that are long. */
export function NameChart({ title, summary, unit, bars }: BarChartProps) {
  const largest = Math.max(1, ...bars.map(({ count }) => count));
  const rowHeight = 24;
  const nameWidth = 190;
  const room = WIDTH - nameWidth - 60;
  return (
    <figure class="chart">
      <figcaption>
        <h2>{title}</h2>
        <p>{summary}</p>
      </figcaption>
      {bars.length > 0 && (
        <>
          <svg
            viewBox={`0 0 ${WIDTH} ${bars.length * rowHeight}`}
            role="img"
            aria-label={`${title}. ${summary}`}
          >
            {bars.map(({ label, count }, at) => (
              <g key={label}>
                <text x={nameWidth - 8} y={at * rowHeight + 16} text-anchor="end">
                  {label}
                </text>
                <rect
                  class="bar"
                  x={nameWidth}
                  y={at * rowHeight + 3}
                  width={(count / largest) * room}
                  height={rowHeight - 6}
                />
                <text x={nameWidth + (count / largest) * room + 6} y={at * rowHeight + 16}>
                  {count.toLocaleString("en")}
                </text>
              </g>
            ))}
          </svg>
          <BarTable title={title} unit={unit} bars={bars} />
        </>
      )}
    </figure>
  );
}

function BarTable({ title, unit, bars }: { title: string; unit: string; bars: readonly Bar[] }) {
  return (
    <details>
      <summary>
        Numbers<span class="visually-hidden"> of the chart “{title}”</span>
      </summary>
      <table>
        <caption class="visually-hidden">{title}</caption>
        <thead>
          <tr>
            <th scope="col">{unit}</th>
            <th scope="col" class="number">
              Attempts
            </th>
          </tr>
        </thead>
        <tbody>
          {bars.map(({ label, count, href }) => (
            <tr key={label}>
              <th scope="row">{href === undefined ? label : <a href={href}>{label}</a>}</th>
              <td class="number">{count.toLocaleString("en")}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </details>
  );
}
