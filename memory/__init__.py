"""Remember, recall, correct and forget durable facts about people."""
