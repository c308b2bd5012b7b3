/** Starts a clock of the milliseconds for which this process has a processor: it stands still while other programs do. */
export function processorClock(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  };
}
