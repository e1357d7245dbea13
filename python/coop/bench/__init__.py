"""`coop bench`: what budgets cost networks, beside plain PyTorch and beside what else there is.

The command's own process does without PyTorch. It has the list of what is to be measured (`grid`),
starts a process for each network and memory ratio (`runner`, `process`), keeps what they say as it
comes (`results`), and shows it (`tables`, `chart`). Such a process (`child`) trains a network
(`networks`, `training`) in one way after another (`ways`), with plain steps in between
(`measuring`), and compares what it leaves with what plain PyTorch leaves (`comparing`). On a CPU it
has two more processes (`partner`) train, which take turns (`turns`).
"""
