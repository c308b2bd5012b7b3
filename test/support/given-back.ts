import { afterAll, vi } from "vitest";

// Vitest gives back what a test has stubbed or spied on only before the next test. Files share a process, so that without this
// the modules and the first hooks of the next file would still see it.
afterAll(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});
