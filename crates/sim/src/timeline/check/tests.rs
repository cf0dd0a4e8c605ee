//! What is refused in a timeline, and how it is said.
