"""The two live views of a fleet: in a terminal and as a page. They show what ``kumulus.extras.watch.live`` knows."""
