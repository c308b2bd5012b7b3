import { useEffect, useState } from "preact/hooks";
import { ThemeSwitch } from "../../../lib/page/theme-switch.js";
import { useFocusOnChange } from "../../../lib/page/use-focus-on-change.js";
import { usePageState } from "../../../lib/page/use-page-state.js";
import { AttemptView } from "./attempt/attempt-view.js";
import { ChartsView } from "./charts/charts-view.js";
import { CompareView } from "./compare/compare-view.js";
import type { ViewName } from "./page-state.js";
import { fragmentOf, type Navigation, stateOf } from "./page-state.js";
import type { RunSource, ShownRun, SourceState } from "./sources/run-source.js";
import { AttemptsView } from "./table/attempts-view.js";

const titles: Record<ViewName, string> = {
  attempts: "Attempts",
  charts: "Charts",
  compare: "Comparison",
  attempt: "Attempt",
};

export function App({ source }: { source: RunSource }) {
  const [loaded, setLoaded] = useState<SourceState>({ kind: "loading" });
  const navigation = usePageState({ stateOf, fragmentOf });
  useEffect(() => source.watch(setLoaded), [source]);
  const { view } = navigation.state;
  const name = loaded.kind === "ready" ? loaded.runs.map(({ header }) => header.name).join(" and ") : "";
  useEffect(() => {
    document.title = `${titles[view]}${name === "" ? "" : ` of ${name}`} · brig view`;
  }, [view, name]);
  return (
    <>
      <button type="button" class="skip" onClick={focusMain}>
        Skip to the content
      </button>
      <header class="top">
        <p class="brand">
          brig view <span class="subject">{name}</span>
        </p>
        {loaded.kind === "ready" && <Views runs={loaded.runs} navigation={navigation} />}
        <ThemeSwitch />
      </header>
      <main id="main" tabIndex={-1}>
        <Content source={source} loaded={loaded} navigation={navigation} />
      </main>
    </>
  );
}

function focusMain(): void {
  document.getElementById("main")?.focus();
}

function Views({ runs, navigation }: { runs: readonly ShownRun[]; navigation: Navigation }) {
  const { state, link } = navigation;
  const shown = (["attempts", "charts", "compare"] as const).filter(
    (view) => view !== "compare" || runs.length > 1,
  );
  return (
    <nav aria-label="Views">
      <ul>
        {shown.map((view) => (
          <li key={view}>
            <a href={link({ view })} aria-current={state.view === view ? "page" : undefined}>
              {titles[view]}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

interface ContentProps {
  source: RunSource;
  loaded: SourceState;
  navigation: Navigation;
}

function Content({ source, loaded, navigation }: ContentProps) {
  const { state } = navigation;
  const heading = useFocusOnChange(`${state.view} ${state.attempt.task} ${state.attempt.number}`);
  if (loaded.kind === "loading") return <h1>Loading the run</h1>;
  if (loaded.kind === "failed")
    return (
      <>
        <h1>The run cannot be shown</h1>
        <p role="alert">{loaded.reason}</p>
      </>
    );
  const { runs, isLive, isStale } = loaded;
  const run = runs[state.run] ?? runs[0];
  if (run === undefined) return <h1>There is no run</h1>;
  const at = runs.indexOf(run);
  return (
    <>
      {isStale && (
        <p role="alert" class="notice">
          The server does not answer any more. The page shows what it sent before.
        </p>
      )}
      <h1 ref={heading} tabIndex={-1} class={state.view === "attempt" ? "visually-hidden" : ""}>
        {titles[state.view]}
      </h1>
      {runs.length > 1 && state.view !== "compare" && <RunChoice runs={runs} navigation={navigation} />}
      {state.view === "attempts" && <AttemptsView run={run} isLive={isLive} navigation={navigation} />}
      {state.view === "charts" && <ChartsView run={run} navigation={navigation} />}
      {state.view === "compare" && <CompareView runs={runs} navigation={navigation} />}
      {state.view === "attempt" && (
        <AttemptView run={run} runNumber={at} source={source} navigation={navigation} />
      )}
    </>
  );
}

function RunChoice({ runs, navigation }: { runs: readonly ShownRun[]; navigation: Navigation }) {
  return (
    <label class="run-choice">
      Run{" "}
      <select
        value={String(navigation.state.run)}
        onChange={({ currentTarget }) => navigation.go({ run: Number(currentTarget.value) })}
      >
        {runs.map(({ header }, at) => (
          <option key={header.name} value={String(at)}>
            {at === 0 ? "A" : "B"}: {header.name}
          </option>
        ))}
      </select>
    </label>
  );
}
