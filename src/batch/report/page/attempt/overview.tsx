import type { Confirmation } from "../../../runs/results/attempt-result.js";
import type { AttemptDetail, AttemptFailureView, AttemptRow, AttemptStep } from "../../view/view-model.js";
import { causeText, costText, countText, durationText, passText, rewardText, timeText } from "../wording.js";
import { FactList, TextView } from "./text-view.js";

export function Overview({ row, detail }: { row: AttemptRow; detail: AttemptDetail }) {
  return (
    <>
      <FactList facts={factsOf(row, detail)} />
      {detail.failure !== null && (
        <section aria-labelledby="failure">
          <h3 id="failure">What went wrong outside the agent</h3>
          <Failure failure={detail.failure} />
        </section>
      )}
      {detail.steps.map((step, at) => (
        <StepResult
          // biome-ignore lint/suspicious/noArrayIndexKey: the steps do not change
          key={at}
          step={step}
          title={step.name ?? (detail.steps.length > 1 ? `Step ${at + 1}` : "Grade")}
        />
      ))}
      <Timings timings={detail.timings} />
      <h3>Resources</h3>
      {detail.resources.length === 0 ? (
        <p class="empty">Nothing was measured.</p>
      ) : (
        <FactList facts={detail.resources} />
      )}
      <h3>Usage</h3>
      <FactList facts={detail.usage} />
      {detail.tries.length > 0 && (
        <>
          <h3>Earlier tries that the infrastructure ended</h3>
          {detail.tries.map(({ startedAt, failure }) => (
            <div key={startedAt}>
              <p>{timeText(startedAt)}</p>
              <Failure failure={failure} />
            </div>
          ))}
        </>
      )}
    </>
  );
}

function factsOf(row: AttemptRow, detail: AttemptDetail) {
  const fact = (name: string, value: string) => ({ name, value });
  return [
    fact("Status", row.status),
    fact("Reward", rewardText(row.reward)),
    ...(row.passKind === null ? [] : [fact("Passed", passText(row.passKind))]),
    ...(row.cause === null ? [] : [fact("Cause", causeText(row.cause))]),
    ...detail.rewards
      .filter(({ name }) => name !== "reward")
      .map(({ name, value }) => fact(`Reward “${name}”`, value)),
    fact("Agent", row.model === null ? row.agent : `${row.agent}, ${row.model}`),
    fact("Time", durationText(row.wallMs)),
    fact("Tokens", countText(row.inputTokens + row.outputTokens)),
    fact("Cost", costText(row.costUsd)),
    fact("Started", timeText(row.startedAt)),
    fact("Image", detail.image ?? "–"),
    fact("Checksum of the task", detail.taskChecksum),
    fact("Folder", detail.folder),
  ];
}

function Failure({ failure }: { failure: AttemptFailureView }) {
  return (
    <>
      <p>
        <strong>{causeText(failure.class)}</strong>
      </p>
      <TextView text={failure.message} label={`Message: ${causeText(failure.class)}`} />
      {failure.evidence.length > 0 && <Lines title="Evidence" lines={failure.evidence} />}
    </>
  );
}

function StepResult({ step, title }: { step: AttemptStep; title: string }) {
  const { verification } = step;
  const fact = (name: string, value: string) => ({ name, value });
  return (
    <section aria-label={title}>
      <h3>{title}</h3>
      <FactList
        facts={[
          fact("Agent", step.ending),
          ...(verification === null
            ? []
            : [fact("Verifier", `${verification.verifier}, ${verification.mode}`)]),
          ...(verification?.exitCode == null ? [] : [fact("Exit code", String(verification.exitCode))]),
          ...step.rewards.map(({ name, value }) => fact(`Reward “${name}”`, value)),
        ]}
      />
      {step.message !== null && (
        <>
          <h4>The agent's last words</h4>
          <TextView text={step.message} label={`Last words, ${title}`} />
        </>
      )}
      {verification !== null && verification.message !== null && (
        <>
          <h4>The verifier's message</h4>
          <TextView text={verification.message} label={`Verifier's message, ${title}`} />
        </>
      )}
      {verification !== null && verification.findings.length > 0 && (
        <Lines title="Found and neutralised before the tests" lines={verification.findings} />
      )}
      {verification !== null && verification.notes.length > 0 && (
        <Lines title="Noticed" lines={verification.notes} />
      )}
      {verification !== null && verification.confirmation !== null && (
        <ConfirmationView confirmation={verification.confirmation} />
      )}
      {verification !== null && verification.tests !== null && (
        <Tests verification={verification} title={title} />
      )}
    </section>
  );
}

function ConfirmationView({ confirmation }: { confirmation: Confirmation }) {
  const { outcome, paths, isSmallest, gradings, message } = confirmation;
  const times = gradings === 1 ? "once" : `${gradings} times`;
  const sentences = {
    clean: "A fresh container with nothing but the work passes as well.",
    outside: "A fresh container with nothing but the work does not pass.",
    unknown: "Whether a fresh container with nothing but the work passes is not known.",
  };
  return (
    <>
      <h4>What the pass rests on</h4>
      <p class={outcome === "outside" ? "notice" : ""}>
        {sentences[outcome]} {message !== null && `${message}. `}
        {gradings > 0 && `It was graded again ${times}.`}
      </p>
      {paths.length > 0 && (
        <Lines
          title={
            isSmallest
              ? "It passes with all of these changes, and not without any of them"
              : "Among these changes is what it rests on"
          }
          lines={paths}
        />
      )}
    </>
  );
}

function Tests({
  verification: { tests, omittedTests },
  title,
}: {
  verification: NonNullable<AttemptStep["verification"]>;
  title: string;
}) {
  return (
    <table class="tests">
      <caption>Tests, {title}</caption>
      <thead>
        <tr>
          <th scope="col">Test</th>
          <th scope="col">Status</th>
        </tr>
      </thead>
      <tbody>
        {tests?.map(({ name, status }, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: two tests may have one name
          <tr key={at}>
            <th scope="row">{name}</th>
            <td class={status === "passed" ? "good" : status === "skipped" ? "" : "bad"}>{status}</td>
          </tr>
        ))}
        {omittedTests > 0 && (
          <tr>
            <td colSpan={2}>{countText(omittedTests)} more tests are left out here.</td>
          </tr>
        )}
      </tbody>
    </table>
  );
}

function Timings({ timings }: { timings: AttemptDetail["timings"] }) {
  const total = timings.reduce((sum, { ms }) => sum + ms, 0);
  if (total === 0) return null;
  return (
    <>
      <h3>Time of each stage</h3>
      <table class="timings">
        <caption class="visually-hidden">Time of each stage</caption>
        <tbody>
          {timings.map(({ stage, ms }) => (
            <tr key={stage}>
              <th scope="row">{stage}</th>
              <td class="number">{durationText(ms)}</td>
              <td class="share" aria-hidden="true">
                <div style={{ width: `${(ms / total) * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}

function Lines({ title, lines }: { title: string; lines: readonly string[] }) {
  return (
    <>
      <h4>{title}</h4>
      <ul class="lines">
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </>
  );
}
