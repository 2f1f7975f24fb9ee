"""What a run is: checked before it starts, new or resumed."""
