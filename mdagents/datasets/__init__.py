"""Questions as they are read: data sets, their published forms, the order of options."""
