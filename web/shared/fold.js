/**
 * The fold of docs/stream-protocol.md: stored messages in order, unstored text and reasoning by step.
 * @param {{ messages: any[], text: Record<string, string>, reasoning: Record<string, string>, tool: string }} state changed in place
 * @param {any} event
 */
export function fold(state, event) {
	const { messages, text, reasoning } = state;
	if (event.event === "text.delta") text[event.step] = (text[event.step] ?? "") + event.text;
	else if (event.event === "reasoning.delta") reasoning[event.step] = (reasoning[event.step] ?? "") + event.text;
	else if (event.event === "message.stored") {
		const place = messages.findIndex((message) => message.id === event.message.id);
		messages.splice(place < 0 ? messages.length : place, 1, event.message);
		if (["assistant", "tool_call"].includes(event.message.role)) for (const said of [text, reasoning]) delete said[event.step];
	} else if (event.event === "turn.restarted") {
		for (const said of [text, reasoning]) for (const step of Object.keys(said)) if (Number(step) >= event.step) delete said[step];
	} else if (event.event === "turn.snapshot")
		Object.assign(state, { messages: event.messages, text: { ...event.text }, reasoning: { ...event.reasoning } });
	if (event.event === "tool.started") state.tool = event.name;
	else if (["tool.finished", "text.delta", "turn.restarted"].includes(event.event)) state.tool = "";
}
