import type { Trajectory, TrajectoryCall, TrajectoryStep } from "../../view/view-model.js";
import { countText, timeText } from "../wording.js";
import { FactList, TextView } from "./text-view.js";

const sources = { system: "System", user: "User", agent: "Agent" } as const;

export function TrajectoryView({ trajectory }: { trajectory: Trajectory }) {
  if (trajectory.kind === "none") return <p class="empty">This attempt has no trajectory.</p>;
  if (trajectory.kind === "unreadable") return <p class="notice">The trajectory {trajectory.reason}.</p>;
  return (
    <>
      <ol class="steps">
        {trajectory.steps.map((step) => (
          <li key={step.number}>
            <Step step={step} />
          </li>
        ))}
      </ol>
      {trajectory.omittedSteps > 0 && (
        <p class="cut">{countText(trajectory.omittedSteps)} more steps are left out here.</p>
      )}
    </>
  );
}

function Step({ step }: { step: TrajectoryStep }) {
  const { number, source, at, message, reasoning, calls, facts } = step;
  const name = `Step ${number}`;
  return (
    <article class={`step step-${source}`} aria-label={`${name}, ${sources[source]}`}>
      <h3>
        {name} <span class="source">{sources[source]}</span>
        {at !== null && <time dateTime={at}>{timeText(at)}</time>}
      </h3>
      {reasoning !== null && (
        <details>
          <summary>Reasoning</summary>
          <TextView text={reasoning} label={`Reasoning of step ${number}`} />
        </details>
      )}
      {(message.head !== "" || calls.length === 0) && (
        <TextView text={message} label={`Message of step ${number}`} />
      )}
      {calls.map((call, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a trajectory does not change
        <Call key={index} call={call} label={`of call ${index + 1} in step ${number}`} />
      ))}
      {facts.length > 0 && <FactList facts={facts} />}
    </article>
  );
}

function Call({ call, label }: { call: TrajectoryCall; label: string }) {
  return (
    <div class="call">
      {call.tool !== "" && (
        <>
          <h4>
            Call <code>{call.tool}</code>
          </h4>
          <TextView text={call.arguments} label={`Arguments ${label}`} />
        </>
      )}
      {call.output === null ? (
        <p class="empty">(no result)</p>
      ) : (
        <>
          <h4>Output</h4>
          <TextView text={call.output} label={`Output ${label}`} />
        </>
      )}
      {call.facts.length > 0 && <FactList facts={call.facts} />}
    </div>
  );
}
