import { type Clock, systemClock } from "../../../lib/time/clock.js";
import type { Engine } from "../../../sandbox/index.js";
import { Admission } from "./admission.js";
import { type AdmissionRules, type Shortage, standardRules } from "./decide.js";
import { EngineGate, type EngineGateLimits, type EnginePause } from "./engine-gate.js";
import { measureMachine } from "./machine.js";
import { ModelGate, type ModelPause } from "./model-gate.js";

interface AdmissionSettings extends Partial<AdmissionRules> {
  maxAtOnce: number;
  clock?: Clock | undefined;
  onWait?: ((shortage: Shortage) => void) | undefined;
}

/** Admission to the machine of this engine. */
export function openAdmission(engine: Engine, settings: AdmissionSettings): Admission {
  const { clock = systemClock, onWait, ...rules } = settings;
  const measure = async () => await measureMachine(engine);
  return new Admission({ measure, rules: { ...standardRules, ...rules }, clock, onWait });
}

interface GateSettings {
  limits?: Partial<EngineGateLimits> | undefined;
  clock?: Clock | undefined;
  random?: (() => number) | undefined;
  onPause?: ((pause: EnginePause) => void) | undefined;
  onResume?: (() => void) | undefined;
}

/** A gate before this engine, which is probed with a question that it answers each time anew. */
export function openEngineGate(engine: Engine, settings: GateSettings = {}): EngineGate {
  const { clock = systemClock, random = Math.random, ...rest } = settings;
  const probe = async () => {
    await engine.health();
  };
  return new EngineGate({ ...rest, clock, random, probe });
}

/** A gate before a model's endpoint. */
export function openModelGate(settings: {
  clock?: Clock | undefined;
  onPause: (pause: ModelPause) => void;
  onResume: () => void;
}): ModelGate {
  const { clock = systemClock, ...rest } = settings;
  return new ModelGate({ ...rest, clock, random: Math.random });
}
