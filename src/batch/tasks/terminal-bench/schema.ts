import { z } from "zod";

const minutes = z.number().min(0).nullish();

/** The keys of task.yaml that brig reads. Other keys are left aside with a warning. */
export const taskYamlSchema = z.object({
  instruction: z.string().refine((text) => text.trim() !== "", "it must not be empty"),
  author_name: z.string().nullish(),
  author_email: z.string().nullish(),
  difficulty: z.string().nullish(),
  category: z.string().nullish(),
  tags: z.array(z.string()).nullish(),
  parser_name: z.string().default("pytest"),
  max_agent_timeout_sec: z.number().positive().default(360),
  max_test_timeout_sec: z.number().positive().default(60),
  keep_services: z
    .boolean()
    .default(false)
    .describe("brig's own: what the agent left running goes on while the tests run"),
  run_tests_in_same_shell: z.boolean().default(false),
  disable_asciinema: z.boolean().nullish().describe("brig makes no such recording"),
  estimated_duration_sec: z.number().min(0).nullish(),
  expert_time_estimate_min: minutes,
  junior_time_estimate_min: minutes,
});
export type TaskYaml = z.output<typeof taskYamlSchema>;

/** Keys typed into a terminal, which are commands if each is ended by the enter key and waited for. */
export const solutionYamlSchema = z.array(
  z.object({
    command: z.string(),
    block: z.boolean().default(true),
    append_enter: z.boolean().default(true),
    min_timeout_sec: z.number().nullish(),
    max_timeout_sec: z.number().nullish(),
  }),
);
