import { useState } from "preact/hooks";
import type { CommandRow, SandboxOverview } from "../wire/overview-schemas.js";
import {
  CardTable,
  type Column,
  Confirmation,
  Facts,
  Pager,
  Problem,
  useRefusal,
  type ViewProps,
} from "./parts.js";
import { Connections, Labels } from "./sandboxes-view.js";
import { Refused, type ServiceCalls, usePolled } from "./service.js";
import {
  countText,
  cpuText,
  endClass,
  endText,
  idleText,
  memoryText,
  shortId,
  spanText,
  tookText,
} from "./wording.js";

const ROWS = 50;

interface SandboxViewProps extends ViewProps {
  service: ServiceCalls;
  id: string;
  /** Called with what was done, in a sentence. */
  onDone: (what: string) => void;
}

/** Something that was asked for, and is only done if it is meant. */
interface Asked {
  question: string;
  action: string;
  act: () => Promise<void>;
}

export function SandboxView({ service, id, navigation, heading, onRefused, onDone }: SandboxViewProps) {
  const { from } = navigation.state;
  const { latest, problem, refresh } = usePolled<SandboxOverview>(
    service,
    `/v1/overview/${encodeURIComponent(id)}?from=${from}&count=${ROWS}`,
  );
  const [asked, setAsked] = useState<Asked | null>(null);
  useRefusal(problem, onRefused);
  const act = async (done: string, doing: Promise<void>) => {
    try {
      await doing;
      onDone(done);
    } catch (error) {
      onDone(`It was not done: ${error instanceof Refused ? error.message : "the page has a fault"}.`);
    }
    refresh();
  };
  const isGone = problem?.status === 404;
  const back = navigation.link({ sandbox: "", from: 0 });
  return (
    <>
      <p class="back">
        <a href={back}>All sandboxes</a>
      </p>
      <h1 ref={heading} tabIndex={-1} class="id">
        Sandbox {id}
      </h1>
      {isGone ? <p class="notice">This sandbox is not there any more.</p> : <Problem problem={problem} />}
      {latest === null ? (
        <p class="soft">{problem === null ? "Loading …" : ""}</p>
      ) : (
        <>
          <Labels row={latest.sandbox} max={latest.sandbox.labelCount} />
          <SandboxFacts overview={latest} />
          {latest.client.mayChange && !isGone && (
            <Actions
              onExtend={(lifeMs, words) =>
                void act(
                  `The sandbox lives for ${words} from now, or as long as it may.`,
                  service.extend(id, lifeMs),
                )
              }
              onRemove={() =>
                setAsked({
                  question: `Remove the sandbox ${shortId(id)}, and end everything in it?`,
                  action: "Remove",
                  act: async () =>
                    await act(`The sandbox ${shortId(id)} was removed.`, service.removeSandbox(id)),
                })
              }
            />
          )}
          <Commands
            overview={latest}
            {...{ from, navigation }}
            onEnd={
              latest.client.mayChange && !isGone
                ? (process, command) =>
                    setAsked({
                      question: `End ${command.slice(0, 80)} and everything that it has started?`,
                      action: "End",
                      act: async () => await act("The process has ended.", service.endProcess(id, process)),
                    })
                : null
            }
          />
          <Hosts overview={latest} />
        </>
      )}
      {asked !== null && (
        <Confirmation
          question={asked.question}
          action={asked.action}
          onAnswer={(isConfirmed) => {
            setAsked(null);
            if (isConfirmed) void asked.act();
          }}
        />
      )}
    </>
  );
}

function SandboxFacts({ overview: { sandbox, client } }: { overview: SandboxOverview }) {
  return (
    <Facts
      facts={[
        ["State", sandbox.state],
        ...(client.seesAll ? [["Client", sandbox.client] as const] : []),
        ["Image", sandbox.image],
        ["Mode", sandbox.mode ?? "that of its task"],
        ["Network", sandbox.network],
        ["Age", spanText(sandbox.ageMs)],
        ["Idle", idleText(sandbox)],
        ["Removed when idle for", spanText(sandbox.idleMs)],
        ["Expires in", spanText(sandbox.expiresInMs)],
        ["Memory", memoryText(sandbox)],
        ["CPU", cpuText(sandbox)],
        ["Connections", <Connections key="connections" egress={sandbox.egress} />],
      ]}
    />
  );
}

const lives: readonly (readonly [string, number])[] = [
  ["10 minutes", 600_000],
  ["1 hour", 3_600_000],
  ["4 hours", 4 * 3_600_000],
];

function Actions({
  onExtend,
  onRemove,
}: {
  onExtend: (lifeMs: number, words: string) => void;
  onRemove: () => void;
}) {
  const [chosen, setChosen] = useState(0);
  const [words, lifeMs] = lives[chosen] ?? ["10 minutes", 600_000];
  return (
    <div class="actions">
      <label>
        Let it live for{" "}
        <select
          value={String(chosen)}
          onChange={({ currentTarget }) => setChosen(Number(currentTarget.value))}
        >
          {lives.map(([one], at) => (
            <option key={one} value={String(at)}>
              {one}
            </option>
          ))}
        </select>
      </label>
      <button type="button" onClick={() => onExtend(lifeMs, words)}>
        Extend
      </button>
      <button type="button" class="danger" onClick={onRemove}>
        Remove …
      </button>
    </div>
  );
}

interface CommandsProps {
  overview: SandboxOverview;
  from: number;
  navigation: ViewProps["navigation"];
  /** Null if the viewer may not. */
  onEnd: ((process: string, command: string) => void) | null;
}

function Commands({ overview, from, navigation, onEnd }: CommandsProps) {
  const { commands, commandCount } = overview;
  const columns: Column<CommandRow>[] = [
    { title: "Kind", cell: ({ process }) => (process === null ? "exec" : `process ${process}`) },
    { title: "State", cell: (row) => <span class={endClass(row)}>{endText(row)}</span> },
    { title: "Began", isNumber: true, cell: ({ ageMs }) => `${spanText(ageMs)} ago` },
    { title: "Took", isNumber: true, cell: ({ tookMs }) => tookText(tookMs) },
    ...(onEnd === null
      ? []
      : [{ title: "Change", cell: (row: CommandRow) => <EndButton row={row} onEnd={onEnd} /> }]),
  ];
  return (
    <section aria-labelledby="commands">
      <h2 id="commands">Commands</h2>
      <Pager
        of="commands"
        {...{ from, shown: commands.length, count: commandCount, size: ROWS, navigation }}
      />
      {commands.length > 0 && (
        <CardTable
          caption="Commands, those that run first"
          columns={[{ title: "Command", cell: ({ command }) => <code>{command}</code> }, ...columns]}
          rows={commands}
          keyOf={(row) => row.process ?? `exec ${from + commands.indexOf(row)}`}
        />
      )}
    </section>
  );
}

interface EndButtonProps {
  row: CommandRow;
  onEnd: NonNullable<CommandsProps["onEnd"]>;
}

function EndButton({ row: { process, command, state }, onEnd }: EndButtonProps) {
  if (process === null || state === "ended") return <span class="soft">–</span>;
  return (
    <button
      type="button"
      class="danger"
      aria-label={`End ${command.slice(0, 80)}`}
      onClick={() => onEnd(process, command)}
    >
      End …
    </button>
  );
}

function Hosts({ overview: { hosts, sandbox } }: { overview: SandboxOverview }) {
  const nothing =
    sandbox.egress === null
      ? "This sandbox has no list of hosts, so that nobody watches what it reaches."
      : "Its programs have tried to reach nothing.";
  return (
    <section aria-labelledby="hosts">
      <h2 id="hosts">Connections</h2>
      {hosts.length === 0 ? (
        <p class="soft">{nothing}</p>
      ) : (
        <CardTable
          caption="Hosts that programs have tried to reach, the latest first"
          columns={[
            { title: "Host", cell: ({ host }) => host ?? "all other hosts" },
            { title: "Allowed", isNumber: true, cell: ({ allowed }) => countText(allowed) },
            {
              title: "Refused",
              isNumber: true,
              cell: ({ refused }) => <span class={refused > 0 ? "bad" : ""}>{countText(refused)}</span>,
            },
            { title: "Failed", isNumber: true, cell: ({ failed }) => countText(failed) },
            { title: "Latest", isNumber: true, cell: ({ latestMs }) => `${spanText(latestMs)} ago` },
          ]}
          rows={hosts}
          keyOf={({ host }) => String(host)}
        />
      )}
    </section>
  );
}
