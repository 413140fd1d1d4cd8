"""Running programs: the one door, their output, their deadlines, holding them still."""
