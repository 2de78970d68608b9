/** The settings of `npm start` itself: of the environment and `.dev.vars`. Apart from the others, because all commands read PORT. */
export const START_SETTINGS = [
  'PORT',
  'RUNNER_PORT',
  'CORTEX_STATE_DIR',
  'CORTEX_BUILT_WORKER',
  'CORTEX_MANIFESTS',
] as const;

export type StartSettings = Readonly<Partial<Record<(typeof START_SETTINGS)[number], string>>>;

export type Variables = Readonly<Record<string, string | undefined>>;

/** @param file the values of `.dev.vars`; the environment takes precedence, and empty values count as unset */
export function givenSettings(environment: Variables, file: Variables): ReadonlyMap<string, string> {
  const given = new Map<string, string>();
  for (const [name, value] of [...Object.entries(file), ...Object.entries(environment)]) {
    if (value !== undefined && value !== '') given.set(name, value);
  }
  return given;
}

export function startSettings(given: ReadonlyMap<string, string>): StartSettings {
  return Object.fromEntries(
    START_SETTINGS.flatMap((name) => {
      const value = given.get(name);
      return value === undefined ? [] : [[name, value]];
    }),
  );
}
