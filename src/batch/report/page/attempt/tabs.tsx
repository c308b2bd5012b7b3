import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import type { TabName } from "../page-state.js";

interface TabsProps {
  chosen: TabName;
  onChoose: (tab: TabName) => void;
  panels: readonly { tab: TabName; title: string; content: ComponentChildren }[];
}

/** Tab reaches the chosen one, the arrow keys the others. All panels are in the document, so that all are printed. */
export function Tabs({ chosen, onChoose, panels }: TabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const place = panels.findIndex(({ tab }) => tab === chosen);
    const moves: Record<string, number> = {
      ArrowRight: place + 1,
      ArrowLeft: place - 1,
      Home: 0,
      End: panels.length - 1,
    };
    const next = moves[event.key];
    const panel = next === undefined ? undefined : panels.at(next % panels.length);
    if (panel === undefined) return;
    event.preventDefault();
    onChoose(panel.tab);
    list.current?.querySelector<HTMLElement>(`#tab-${panel.tab}`)?.focus();
  };
  return (
    <>
      <div role="tablist" aria-label="About this attempt" ref={list} onKeyDown={onKeyDown} class="tabs">
        {panels.map(({ tab, title }) => (
          <button
            key={tab}
            type="button"
            role="tab"
            id={`tab-${tab}`}
            aria-selected={tab === chosen}
            aria-controls={`panel-${tab}`}
            tabIndex={tab === chosen ? 0 : -1}
            onClick={() => onChoose(tab)}
          >
            {title}
          </button>
        ))}
      </div>
      {panels.map(({ tab, title, content }) => (
        <div
          key={tab}
          role="tabpanel"
          id={`panel-${tab}`}
          aria-labelledby={`tab-${tab}`}
          hidden={tab !== chosen}
          class="panel"
        >
          <h2 class="on-paper">{title}</h2>
          {content}
        </div>
      ))}
    </>
  );
}
