import type { Overview, SandboxRow } from "../wire/overview-schemas.js";
import { type Navigation, orderNames } from "./page-state.js";
import { CardTable, type Column, Facts, Pager, Problem, useRefusal, type ViewProps } from "./parts.js";
import { type ServiceCalls, usePolled } from "./service.js";
import { countText, cpuText, endClass, endText, idleText, memoryText, shortId, spanText } from "./wording.js";

const ROWS = 50;
/** So many labels of a sandbox are in its row. */
const LISTED_LABELS = 4;

export function SandboxesView({
  service,
  navigation,
  heading,
  onRefused,
}: ViewProps & { service: ServiceCalls }) {
  const { text, order, from } = navigation.state;
  const query = new URLSearchParams({ text, order, from: String(from), count: String(ROWS) });
  const { latest, problem } = usePolled<Overview>(service, `/v1/overview?${query}`);
  useRefusal(problem, onRefused);
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        Sandboxes
      </h1>
      <Problem problem={problem} />
      {latest === null ? (
        <p class="soft">{problem === null ? "Loading …" : ""}</p>
      ) : (
        <>
          <ServiceFacts overview={latest} />
          <Clients overview={latest} />
          <Filter navigation={navigation} />
          <Pager
            of="sandboxes"
            {...{ from, shown: latest.sandboxes.length, count: latest.matching, size: ROWS, navigation }}
          />
          {latest.sandboxes.length > 0 && <SandboxTable overview={latest} navigation={navigation} />}
        </>
      )}
    </>
  );
}

function ServiceFacts({ overview }: { overview: Overview }) {
  const { places, status, version, client, total } = overview;
  const { taken, max, maxPerClient, waiting, maxWaiting } = places;
  return (
    <Facts
      facts={[
        ["Service", status === "ok" ? "takes requests" : "is ending"],
        ["Places taken", `${countText(taken)} of ${countText(max)}`],
        ...(maxPerClient < max ? [["For each client", countText(maxPerClient)] as const] : []),
        ["Waiting", `${countText(waiting)} of at most ${countText(maxWaiting)}`],
        [client.seesAll ? "Sandboxes of all clients" : "Sandboxes of this client", countText(total)],
        ["This token", client.mayChange ? "may look and change" : "may look"],
        ["Version", version],
      ]}
    />
  );
}

function Clients({ overview }: { overview: Overview }) {
  const { clients, client } = overview;
  if (clients.length === 0) return null;
  const summary = client.seesAll
    ? `${countText(clients.length)} ${clients.length === 1 ? "client has" : "clients have"} places or want some`
    : "What this client has of its quota";
  return (
    <details>
      <summary>{summary}</summary>
      <CardTable
        caption="Clients and their places"
        columns={[
          { title: "Client", cell: ({ name }) => name },
          { title: "Places", isNumber: true, cell: (row) => ofQuota(row.places, row.quota.maxSandboxes) },
          { title: "Waiting", isNumber: true, cell: ({ waiting }) => countText(waiting) },
          { title: "Processors", isNumber: true, cell: (row) => ofQuota(row.cpus, row.quota.cpus) },
          { title: "Memory in MB", isNumber: true, cell: (row) => ofQuota(row.memoryMb, row.quota.memoryMb) },
          {
            title: "Minutes today",
            isNumber: true,
            cell: (row) => ofQuota(Math.floor(row.minutes), row.quota.minutesPerDay),
          },
        ]}
        rows={clients}
        keyOf={({ name }) => name}
      />
    </details>
  );
}

function ofQuota(used: number, most: number | null): string {
  return most === null ? countText(used) : `${countText(used)} of ${countText(most)}`;
}

function Filter({ navigation }: { navigation: Navigation }) {
  const { text, order } = navigation.state;
  return (
    <search class="filters">
      <label>
        Search
        <input
          type="search"
          maxLength={200}
          value={text}
          placeholder="id, label, image, network"
          onInput={({ currentTarget }) =>
            navigation.go({ text: currentTarget.value, from: 0 }, { replace: true })
          }
        />
      </label>
      <label>
        Order
        <select
          value={order}
          onChange={({ currentTarget }) =>
            navigation.go({ order: currentTarget.value as typeof order, from: 0 }, { replace: true })
          }
        >
          {Object.entries(orderNames).map(([name, words]) => (
            <option key={name} value={name}>
              {words}
            </option>
          ))}
        </select>
      </label>
    </search>
  );
}

const columns: readonly Column<SandboxRow>[] = [
  {
    title: "Image, mode",
    cell: ({ image, mode }) => (
      <>
        <span class="clip">{image}</span>
        <span class="soft">{mode ?? "that of its task"}</span>
      </>
    ),
  },
  { title: "Network", cell: ({ network }) => <span class="clip">{network}</span> },
  { title: "Age", isNumber: true, cell: ({ ageMs }) => spanText(ageMs) },
  { title: "Idle", isNumber: true, cell: idleText },
  { title: "Expires in", isNumber: true, cell: ({ expiresInMs }) => spanText(expiresInMs) },
  {
    title: "Memory, CPU",
    isNumber: true,
    cell: (row) => (
      <>
        {memoryText(row)}
        <br />
        {cpuText(row)}
      </>
    ),
  },
  { title: "Commands", cell: (row) => <LatestCommand row={row} /> },
  { title: "Connections", cell: ({ egress }) => <Connections egress={egress} /> },
];

const clientColumn: Column<SandboxRow> = {
  title: "Client",
  cell: ({ client }) => <span class="clip">{client}</span>,
};

function SandboxTable({ overview, navigation }: { overview: Overview; navigation: Navigation }) {
  const name: Column<SandboxRow> = {
    title: "Sandbox",
    cell: (row) => (
      <>
        <a href={navigation.link({ sandbox: row.id, from: 0 })}>{shortId(row.id)}</a>{" "}
        {row.state !== "open" && <span class="badge">{row.state}</span>}
        <Labels row={row} max={LISTED_LABELS} />
      </>
    ),
  };
  const others = overview.client.seesAll ? [clientColumn, ...columns] : columns;
  return (
    <CardTable
      caption="Sandboxes"
      columns={[name, ...others]}
      rows={overview.sandboxes}
      keyOf={({ id }) => id}
    />
  );
}

export function Labels({ row, max }: { row: SandboxRow; max: number }) {
  const { labelCount } = row;
  if (labelCount === 0) return null;
  const labels = row.labels.slice(0, max);
  return (
    <ul class="labels" aria-label="Labels">
      {labels.map((label) => (
        <li key={label} title={label}>
          {label}
        </li>
      ))}
      {labelCount > labels.length && <li>and {countText(labelCount - labels.length)} more</li>}
    </ul>
  );
}

function LatestCommand({ row: { runningCount, latest } }: { row: SandboxRow }) {
  if (latest === null) return <span class="soft">none yet</span>;
  const others = runningCount - (latest.state === "running" ? 1 : 0);
  return (
    <>
      <code class="clip">{latest.command}</code>
      <span class={endClass(latest)}>{endText(latest)}</span>
      {others > 0 && <span class="soft"> {countText(others)} more running</span>}
    </>
  );
}

export function Connections({ egress }: Pick<SandboxRow, "egress">) {
  if (egress === null) return <span class="soft">not watched</span>;
  const { allowed, refused, failed } = egress;
  if (allowed + refused + failed === 0) return <span class="soft">none yet</span>;
  return (
    <>
      {countText(allowed)} allowed
      {refused > 0 && <span class="bad">, {countText(refused)} refused</span>}
      {failed > 0 && <span>, {countText(failed)} failed</span>}
    </>
  );
}
