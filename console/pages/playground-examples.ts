/** Protocol texts to begin with, each with one idea. All of them run with the bundled assistant and without a model. */
export interface PlaygroundExample {
  readonly title: string;
  readonly text: string;
}

export const EXAMPLES: readonly PlaygroundExample[] = [
  {
    title: 'Dependency',
    text: `<thought>The sum needs both prices; the report needs the sum. One generation declares it all.</thought>
<action name="calculator" mode="async" id="hotel">{"expression": "3 * 119"}</action>
<action name="echo" mode="async" id="train">{"delay_ms": 1200, "price": 84}</action>
<action name="calculator" mode="async" id="sum">{"expression": "$hotel + $train.price"}</action>
<action name="echo" mode="async" id="report">{"text": "The trip costs $sum euros."}</action>
<response final="true">$report.text</response>
`,
  },
  {
    title: 'Retry',
    text: `<thought>The first two attempts fail. The other action does not wait for the third.</thought>
<action name="echo" mode="async" id="shaky" retry='{"max_attempts": 3, "delay": 0.5}'>{"fail_times": 2, "text": "at last"}</action>
<action name="echo" mode="async" id="steady">{"text": "at once"}</action>
<response final="true">$steady.text, and $shaky.text</response>
`,
  },
  {
    title: 'Rejected',
    text: `<thought>Two of these are rejected, and one has a warning. What is right is executed.</thought>
<action name="echo" mode="async" id="good">{"text": "still here"}</action>
<action name="echo" mode="async" id="good">{"text": "the id is taken"}</action>
<action name="echo" mode="async" id="lost" depends_on=["nothing"]>{}</action>
<action name="calculater" mode="async" id="typo">{"expression": "1 + 1"}</action>
<response final="true">$good.text</response>
`,
  },
];
