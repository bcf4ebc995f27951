/**
 * The fold of docs/stream-protocol.md: stored messages in order, unstored text by step.
 * @param {{ messages: any[], text: Record<string, string>, tool: string }} state changed in place
 * @param {any} event
 */
export function fold(state, event) {
	const { messages, text } = state;
	if (event.event === "text.delta") text[event.step] = (text[event.step] ?? "") + event.text;
	else if (event.event === "message.stored") {
		const place = messages.findIndex((message) => message.id === event.message.id);
		messages.splice(place < 0 ? messages.length : place, 1, event.message);
		if (["assistant", "tool_call"].includes(event.message.role)) delete text[event.step];
	} else if (event.event === "turn.restarted") {
		for (const step of Object.keys(text)) if (Number(step) >= event.step) delete text[step];
	} else if (event.event === "turn.snapshot") Object.assign(state, { messages: event.messages, text: { ...event.text } });
	if (event.event === "tool.started") state.tool = event.name;
	else if (["tool.finished", "text.delta", "turn.restarted"].includes(event.event)) state.tool = "";
}
