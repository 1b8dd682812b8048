"""Teams of language models as standard PettingZoo and Gymnasium environments."""
