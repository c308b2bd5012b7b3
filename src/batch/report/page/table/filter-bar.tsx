import { useMemo } from "preact/hooks";
import type { Navigation } from "../page-state.js";
import { noFilter, type RewardRange, type RowFilter, rewardRanges } from "../page-state.js";
import type { ShownRun } from "../sources/run-source.js";
import { causeText } from "../wording.js";
import { tagsOf } from "./choose-rows.js";

const rewardNames: Record<RewardRange, string> = {
  "": "any",
  full: "full (1 or more)",
  partial: "between 0 and 1",
  zero: "0 or less",
  none: "no reward",
};

export function FilterBar({ run, navigation }: { run: ShownRun; navigation: Navigation }) {
  const { rows, header } = run;
  const { filter } = navigation.state;
  const statuses = useMemo(() => [...new Set(rows.map(({ status }) => status))].toSorted(), [rows]);
  const causes = useMemo(() => [...new Set(rows.flatMap(({ cause }) => cause ?? []))].toSorted(), [rows]);
  const tags = useMemo(() => tagsOf(header), [header]);
  const set = (change: Partial<RowFilter>) =>
    navigation.go({ filter: { ...filter, ...change } }, { replace: true });
  return (
    <search>
      <form class="filters" onSubmit={(event) => event.preventDefault()}>
        <label>
          Search
          <input
            type="search"
            value={filter.text}
            placeholder="task, agent, cause"
            onInput={({ currentTarget }) => set({ text: currentTarget.value })}
          />
        </label>
        {filter.task !== "" && (
          <label>
            Task
            <select value={filter.task} onChange={({ currentTarget }) => set({ task: currentTarget.value })}>
              <option value="">any</option>
              <option value={filter.task}>{filter.task}</option>
            </select>
          </label>
        )}
        <Choice
          label="Status"
          value={filter.status}
          onChange={(status) => set({ status })}
          names={statuses}
        />
        <label>
          Reward
          <select
            value={filter.reward}
            onChange={({ currentTarget }) =>
              set({ reward: rewardRanges.find((range) => range === currentTarget.value) ?? "" })
            }
          >
            {rewardRanges.map((range) => (
              <option key={range} value={range}>
                {rewardNames[range]}
              </option>
            ))}
          </select>
        </label>
        <Choice
          label="Cause"
          value={filter.cause}
          onChange={(cause) => set({ cause })}
          names={causes}
          wording={causeText}
        />
        {tags.length > 0 && (
          <Choice label="Tag" value={filter.tag} onChange={(tag) => set({ tag })} names={tags} />
        )}
        <button type="button" onClick={() => set(noFilter)}>
          Clear
        </button>
      </form>
    </search>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  names: readonly string[];
  wording?: (name: string) => string;
  onChange: (value: string) => void;
}

function Choice({ label, value, names, onChange, wording = (name) => name }: ChoiceProps) {
  // A linked filter stays visible even if no row has its value.
  const shown = value === "" || names.includes(value) ? names : [...names, value];
  return (
    <label>
      {label}
      <select value={value} onChange={({ currentTarget }) => onChange(currentTarget.value)}>
        <option value="">any</option>
        {shown.map((name) => (
          <option key={name} value={name}>
            {wording(name)}
          </option>
        ))}
      </select>
    </label>
  );
}
