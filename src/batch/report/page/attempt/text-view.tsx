import { formatBytes } from "../../../../lib/bytes.js";
import type { Fact, ShownText } from "../../view/view-model.js";

/** A text as it is, and a sentence where its middle was left out. */
export function TextView({
  text,
  label,
  file,
}: {
  text: ShownText;
  label: string;
  file?: string | undefined;
}) {
  if (text.head === "" && text.omittedBytes === 0) return <p class="empty">(empty)</p>;
  return (
    <>
      <Block label={label}>{text.head}</Block>
      <Cut text={text} file={file} />
      {text.tail !== "" && <Block label={`${label}, its end`}>{text.tail}</Block>}
    </>
  );
}

export function Cut({ text, file }: { text: ShownText; file?: string | undefined }) {
  if (text.omittedBytes === 0) return null;
  return (
    <p class="cut">
      {formatBytes(text.omittedBytes)} are left out here.
      {file !== undefined && ` All of it is in the run's folder, below ${file}.`}
    </p>
  );
}

/** It can be scrolled, so the keyboard has to reach it. */
export function Block({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for controls
    <pre tabIndex={0} role="group" aria-label={label}>
      {children}
    </pre>
  );
}

export function FactList({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(({ name, value }) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
